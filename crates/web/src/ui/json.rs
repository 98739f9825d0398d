//! JSON as people read it.
//!
//! What is shown may be cut off anywhere, or be no JSON at all: so it is laid out by its signs alone,
//! and every character of it stays.

use std::fmt::Display;

use serde_json::Value;

/// A text as a page shows it.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) text: String,
    /// Whether there is more than is shown.
    pub(crate) is_cut: bool,
}

/// A value, no more than `most` bytes of it.
pub(crate) fn value(value: &Value, most: usize) -> Shown {
    lay_out(&value.to_string(), most)
}

/// A text that may be JSON; with line breaks and indents it is no longer than `most` bytes.
pub(crate) fn lay_out(text: &str, most: usize) -> Shown {
    let is_json = text.trim_start().starts_with(['{', '[']);
    let mut page = Page { text: String::new(), most, depth: 0 };
    let mut characters = text.chars().peekable();
    let (mut is_quoted, mut is_escaped) = (false, false);
    while let Some(character) = characters.next() {
        let fits = match character {
            _ if !is_json => page.put(visible(character)),
            '"' if !is_escaped => {
                is_quoted = !is_quoted;
                page.put('"')
            }
            _ if is_quoted => page.put(visible(character)),
            ' ' | '\n' | '\r' | '\t' => true,
            '{' | '[' => {
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                let closing = if character == '{' { '}' } else { ']' };
                match characters.next_if_eq(&closing) {
                    Some(closing) => page.put(character) && page.put(closing),
                    None => page.put(character) && page.open(),
                }
            }
            '}' | ']' => page.close() && page.put(character),
            ',' => page.put(',') && page.line(),
            ':' => page.put(':') && page.put(' '),
            other => page.put(visible(other)),
        };
        if !fits {
            return Shown { text: page.text, is_cut: true };
        }
        is_escaped = is_quoted && character == '\\' && !is_escaped;
    }
    Shown { text: page.text, is_cut: false }
}

/// A character, or the sign for one that nobody can see.
fn visible(character: char) -> char {
    let is_layout = matches!(character, '\n' | '\t');
    if character.is_control() && !is_layout { char::REPLACEMENT_CHARACTER } else { character }
}

struct Page {
    text: String,
    most: usize,
    depth: usize,
}

/// Indents beyond this tell nobody anything, and a body may be nested to any depth.
const DEEPEST: usize = 40;

impl Page {
    fn put(&mut self, character: char) -> bool {
        if self.text.len() + character.len_utf8() > self.most {
            return false;
        }
        self.text.push(character);
        true
    }

    fn line(&mut self) -> bool {
        self.put('\n') && (0..2 * self.depth.min(DEEPEST)).all(|_| self.put(' '))
    }

    fn open(&mut self) -> bool {
        self.depth += 1;
        self.line()
    }

    fn close(&mut self) -> bool {
        self.depth = self.depth.saturating_sub(1);
        self.line()
    }
}

/// The fields of an object in a line each, those of a plain value as they are.
pub(crate) fn fields(value: &Value) -> Vec<(String, String)> {
    let Value::Object(fields) = value else { return Vec::new() };
    let text = |value: &Value| match value {
        Value::String(text) => shortened(text),
        other => shortened(other),
    };
    fields.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// At most some lines of it.
pub(crate) fn shortened(text: impl Display) -> String {
    const MOST: usize = 600;
    let text = text.to_string();
    let mut characters = text.char_indices();
    match characters.nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_laid_out_as_the_library_does() {
        for value in [
            json!({"a": [1, 2, {"b": "x: {\"y\", [z]}\\"}], "c": {}, "d": [], "e": "é\n"}),
            json!([]),
            json!({}),
            json!([[[]]]),
        ] {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(super::value(&value, 10_000).text, expected);
            assert_eq!(lay_out(&expected, 10_000).text, expected);
        }
    }

    #[test]
    fn what_is_cut_or_no_json_stays_as_it_is() {
        let cut = lay_out("{\"a\": [1, 2", 10_000);
        assert_eq!(cut.text, "{\n  \"a\": [\n    1,\n    2");
        assert!(!cut.is_cut);
        assert_eq!(lay_out("<html>, {x}\u{0}", 10_000).text, "<html>, {x}\u{FFFD}");
        assert_eq!(lay_out("]]]}}", 10_000).text, "]]]}}");
        let long = lay_out(&json!(vec!["é"; 1000]).to_string(), 100);
        assert!(long.is_cut && long.text.len() <= 100);
        let deep = lay_out(&"[".repeat(100_000), 4096);
        assert!(deep.is_cut && deep.text.len() <= 4096);
    }

    #[test]
    fn fields_are_short() {
        let all = fields(&json!({"a": "x".repeat(10_000), "b": 1, "c": null}));
        assert_eq!(all[0].1.chars().count(), 601);
        assert_eq!(all[1..], [("b".into(), "1".into()), ("c".into(), "null".into())]);
        assert_eq!(fields(&json!(3)), []);
    }
}
