//! The splitter against serde_json: the same elements of what is JSON, however it is cut, and nothing of
//! what is not. `cargo xtask fuzz` runs the long form of it.

use std::time::{Duration, Instant};

use lavra_writer::split::{Malformed, Piece, Splitter};
use proptest::prelude::*;
use serde_json::value::RawValue;

const LONGEST: usize = 1 << 20;

fn split(path: &[&str], chunks: &[&[u8]]) -> Result<Vec<String>, Malformed> {
    let path = path.iter().map(|part| (*part).to_owned()).collect();
    let mut splitter = Splitter::new(path, LONGEST);
    let mut found = Vec::new();
    let mut sink = |index: u64, piece: Piece<'_>| {
        assert_eq!(index, found.len() as u64);
        match piece {
            Piece::Element(text) => found.push(text.to_owned()),
            Piece::TooLong { bytes } => panic!("nothing here has {bytes} bytes"),
        }
        Ok::<(), Malformed>(())
    };
    for chunk in chunks {
        splitter.feed(chunk, &mut sink)?;
    }
    splitter.finish(&mut sink)?;
    Ok(found)
}

/// What serde_json makes of the same; `None` where it refuses.
fn expected(path: &[&str], text: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text)).ok()?;
    let elements = |array: &RawValue| -> Option<Vec<String>> {
        let raw: Vec<&RawValue> = serde_json::from_str(array.get()).ok()?;
        Some(raw.iter().map(|element| element.get().to_owned()).collect())
    };
    let root: Result<&RawValue, _> = serde_json::from_str(text);
    if path.is_empty() {
        if text.trim_start_matches([' ', '\n', '\r', '\t']).starts_with('[') {
            return elements(root.ok()?);
        }
        let lines = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let lines: Result<Vec<String>, _> =
            lines.map(|line| line.map(|raw| raw.get().to_owned())).collect();
        return lines.ok().filter(|lines| !lines.is_empty());
    }
    let mut at = root.ok()?;
    for part in path {
        let Fields(fields) = serde_json::from_str(at.get()).ok()?;
        let mut named = fields.into_iter().filter(|(name, _)| name == part);
        at = named.next()?.1;
        if named.next().is_some() {
            return None;
        }
    }
    at.get().starts_with('[').then(|| elements(at)).flatten()
}

/// All fields, so that one that stands twice is seen.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> serde::de::Visitor<'de> for All {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(All)
    }
}

const PATHS: [&[&str]; 4] = [&[], &["ads"], &["data", "items"], &["é\n"]];

/// Whole, byte by byte, and cut at every place (of the short ones) or at some.
fn check(path: &[&str], text: &[u8], cuts: &[usize]) {
    let expected = expected(path, text);
    let agree = |chunks: &[&[u8]]| {
        let found = split(path, chunks);
        assert_eq!(
            found.as_ref().ok(),
            expected.as_ref(),
            "{path:?} of {:?} ({:?})",
            String::from_utf8_lossy(text),
            found.as_ref().err()
        );
    };
    agree(&[text]);
    agree(&text.chunks(1).collect::<Vec<_>>());
    if text.len() <= 64 {
        for cut in 0..text.len() {
            agree(&[&text[..cut], &text[cut..]]);
        }
    }
    let mut chunks = Vec::new();
    let mut rest = text;
    for cut in cuts {
        let (one, other) = rest.split_at((*cut).min(rest.len()));
        chunks.push(one);
        rest = other;
    }
    chunks.push(rest);
    agree(&chunks);
}

fn json(depth: u32) -> impl Strategy<Value = String> {
    let string = prop_oneof![
        Just(r#""a""#.to_owned()),
        Just(r#""\"\\\/\b\f\n\r\t""#.to_owned()),
        Just("\"\\u00e9\\ud83d\\ude00 ][}{,:\"".to_owned()),
        Just("\"ads\"".to_owned()),
        "\"[ -!#-\\[\\]-~é😀]{0,20}\"",
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        Just("-0.5e+10".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        string.clone(),
    ];
    leaf.prop_recursive(depth, 40, 5, move |inner| {
        let space = prop_oneof![Just(""), Just(" "), Just("\n\t ")];
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..5), space.clone()).prop_map(
                |(items, space)| format!(
                    "[{space}{}{space}]",
                    items.join(&format!("{space},{space}"))
                )
            ),
            (prop::collection::vec((string.clone(), inner), 0..5), space).prop_map(
                |(fields, space)| {
                    let fields: Vec<String> = fields
                        .iter()
                        .map(|(key, value)| format!("{key}{space}:{space}{value}"))
                        .collect();
                    format!("{{{space}{}}}", fields.join(&format!("{space},")))
                }
            ),
        ]
    })
}

fn document() -> impl Strategy<Value = String> {
    let array = prop::collection::vec(json(4), 0..8)
        .prop_map(|items| format!("[{}]", items.join(",")))
        .boxed();
    prop_oneof![
        json(5),
        array.clone(),
        prop::collection::vec(json(3), 1..6).prop_map(|lines| lines.join("\n")),
        (array.clone(), json(3))
            .prop_map(|(array, other)| format!("{{\"x\":{other},\"ads\":{array}}}")),
        (array.clone(), json(3))
            .prop_map(|(array, other)| format!("{{\"\\u0061ds\" : {array} , \"y\":{other}}}\n")),
        (array.clone(), json(3)).prop_map(|(array, other)| {
            format!(
                "\u{feff}{{\"data\":{{\"n\":1,\"items\":{array},\"m\":{other}}},\"é\\n\":{array}}}"
            )
        }),
    ]
}

/// One change: a byte that is another, gone, twice, or a piece that stands elsewhere.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::sample::select(b"[]{}\",:\\ \n0-.etnu\x00\x1f\xff\xc3".to_vec());
    let change = (0_usize..4, any::<prop::sample::Index>(), bytes);
    (document(), prop::collection::vec(change, 0..4)).prop_map(|(text, changes)| {
        let mut text = text.into_bytes();
        for (kind, place, byte) in changes {
            if text.is_empty() {
                break;
            }
            let at = place.index(text.len());
            match kind {
                0 => text[at] = byte,
                1 => {
                    text.remove(at);
                }
                2 => text.insert(at, byte),
                _ => text.truncate(at),
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_elements_are_those_that_serde_json_finds(
        text in mutated(), path in 0_usize..4, cuts in prop::collection::vec(0_usize..40, 0..12)
    ) {
        check(PATHS[path], &text, &cuts);
    }

    #[test]
    fn bytes_that_mean_nothing_are_refused_as_serde_json_refuses_them(
        text in prop::collection::vec(prop::sample::select(b"[]{}\",:\\ \n1-.e+tnu\xc3\xa9".to_vec()), 0..40),
        path in 0_usize..4,
    ) {
        check(PATHS[path], &text, &[3, 1, 7]);
    }
}

/// For as many seconds as `LAVRA_FUZZ_SECONDS` says; with another seed each time, which a failure prints.
#[test]
#[ignore = "runs for as long as it is told to: cargo xtask fuzz"]
fn fuzz() {
    let seconds =
        std::env::var("LAVRA_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut cases = 0_u64;
    while Instant::now() < end {
        let config = ProptestConfig {
            cases: 2000,
            max_shrink_iters: 100_000,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let all = (mutated(), 0_usize..4, prop::collection::vec(0_usize..40, 0..12));
        let ran = runner.run(&all, |(text, path, cuts)| {
            check(PATHS[path], &text, &cuts);
            Ok(())
        });
        if let Err(error) = ran {
            panic!("{error}");
        }
        cases += 2000;
    }
    eprintln!("{cases} documents were split as serde_json reads them");
}

#[test]
fn paths_lead_to_any_depth() {
    let text = br#"{"skip": {"ads": [9]}, "data": {"other": "]", "items": [{"a": 1}, 2 ,"x"]}}"#;
    assert_eq!(split(&["data", "items"], &[text]).unwrap(), ["{\"a\": 1}", "2", "\"x\""]);
    assert_eq!(split(&["skip", "ads"], &[text]).unwrap(), ["9"]);
    let missing = split(&["data", "nothing"], &[text]).unwrap_err();
    assert_eq!(missing.to_string(), "there is no \"data.nothing\" in the source");
    let wrong = split(&["data", "other"], &[text]).unwrap_err();
    assert_eq!(wrong.to_string(), "\"data.other\" is a string in the source, not an array");
}

#[test]
fn lines_are_elements() {
    assert_eq!(
        split(&[], &[b"{\"a\":1}\n{\"a\":2}\r\n\n3"]).unwrap(),
        ["{\"a\":1}", "{\"a\":2}", "3"]
    );
}

#[test]
fn an_element_that_is_too_long_is_passed_over_and_the_others_are_not() {
    let mut splitter = Splitter::new(Vec::new(), 10);
    let mut found = Vec::new();
    let mut sink = |index: u64, piece: Piece<'_>| {
        found.push((index, matches!(piece, Piece::Element(_))));
        Ok::<(), Malformed>(())
    };
    let text = br#"[1, "0123456789", {"a": "]]]]]]]]]]]]]"}, 2]"#;
    for byte in text {
        splitter.feed(&[*byte], &mut sink).unwrap();
    }
    splitter.finish(&mut sink).unwrap();
    assert_eq!(found, [(0, true), (1, false), (2, false), (3, true)]);
}

#[test]
fn what_is_wrong_is_said() {
    for (text, said) in [
        ("", "the source is empty"),
        ("<html>", "not JSON at byte 0: a value was expected"),
        ("[1, 2", "ends at byte 5"),
        ("[1 2]", "a comma or the end of the array"),
        ("[1]x", "something stands after the end"),
        ("[{\"a\":}]", "element 0"),
    ] {
        let error = split(&[], &[text.as_bytes()]).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}
