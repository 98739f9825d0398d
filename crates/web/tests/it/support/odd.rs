//! What nobody types on purpose, the same in every run.

use serde_json::Value;

/// Texts that have broken programs before.
pub(crate) fn texts() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        " ",
        "\0",
        "a\0b",
        "\u{202e}txt.exe",
        "\u{fdfa}",
        "é\u{301}\u{200d}\u{1f469}\u{200d}\u{1f4bb}",
        "\u{feff}",
        "\u{ffff}",
        "\r\nSet-Cookie: a=b",
        "'; DROP TABLE public.missions; --",
        "\" OR \"\"=\"",
        "%",
        "%%",
        "_",
        "\\",
        "../../etc/passwd",
        "..%2f..%2f",
        "{{7*7}}",
        "${jndi:ldap://x}",
        "<script>alert(1)</script>",
        "-1",
        "0",
        "-0",
        "1e9",
        "1e400",
        "NaN",
        "Infinity",
        "0x10",
        "2147483647",
        "2147483648",
        "-2147483649",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "100000000000000000000000000000000",
        "true",
        "null",
        "undefined",
        "[]",
        "{}",
        "0000-00-00",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "-009999-01-01",
        "+009999-12-31",
        "2024-02-30",
        "0000-01",
        "9999-12",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-30T22:00:00.999999999Z",
        "9999-12-31T23:59:59Z",
        "-009999-01-02T01:59:59Z",
        "2024-01-01T00:00:00",
        "2024-01-01T25:00:00Z",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "mis_",
        "mis_'",
        "a:b",
        ":retry",
        "a,b,,c",
        ",",
        "0-x",
        "99999999999999999-log_x",
        "100000000000000000-log_x",
        "999999-x",
        "1000000-x",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push("x".repeat(10_000));
    all.push("9".repeat(400));
    all.push("é".repeat(3_000));
    all
}

/// Odd JSON values, lone surrogates apart: those are no text that a program here can hold.
pub(crate) fn values() -> Vec<String> {
    let texts = texts().into_iter().step_by(2).map(|text| Value::String(text).to_string());
    let others = [
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e308",
        "-1e308",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "[]",
        "{}",
        "[null]",
        "[[]]",
        "[{}]",
        "{\"a\":1}",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "[\"\"]",
        "[[\"\"]]",
        "[\"a\\u0000b\"]",
        "[[\"\\u0000\"]]",
    ];
    texts.chain(others.map(str::to_owned)).collect()
}

/// The beginning of a text, for a message.
pub(crate) fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(300).collect::<String>())
}

/// Odd things without an end, from a seed.
pub(crate) struct Odd {
    state: u64,
    texts: Vec<String>,
    values: Vec<String>,
}

impl Odd {
    pub(crate) fn new(seed: &str) -> Self {
        let state = seed.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { state, texts: texts(), values: values() }
    }

    /// Splitmix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn known(&mut self) -> String {
        let place = self.below(self.texts.len());
        self.texts[place].clone()
    }

    pub(crate) fn text(&mut self) -> String {
        match self.below(7) {
            0 => self.known(),
            1 => format!("{}{}", self.known(), self.known()),
            // Near the ends of what numbers hold.
            2 => {
                let end = 1_i128 << self.below(70);
                let sign = if self.below(2) == 0 { 1 } else { -1 };
                (sign * end + self.below(3) as i128 - 1).to_string()
            }
            3 => {
                let fraction = "9".repeat(self.below(20));
                format!("{}.{fraction}e{}", self.below(10), self.below(800) as i32 - 400)
            }
            // Days and times that are none, or at the ends of time.
            4 => format!(
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                self.below(11_000),
                self.below(15),
                self.below(34),
                self.below(26),
                self.below(62),
                self.below(62)
            ),
            // Any characters at all, those that control something among them.
            5 => {
                let length = self.below(40);
                let any = (0..length).map(|_| {
                    let most = [0x20, 0x100, 0x3000, 0x11_0000][self.below(4)];
                    char::from_u32(self.below(most) as u32).unwrap_or('\u{fffd}')
                });
                any.collect()
            }
            _ => self.known().chars().take(8).collect::<String>().repeat(1 + self.below(2_000)),
        }
    }

    /// As JSON, of any type.
    pub(crate) fn value(&mut self) -> String {
        match self.below(4) {
            0 => {
                let place = self.below(self.values.len());
                self.values[place].clone()
            }
            1 => format!("[{}]", self.value()),
            2 => format!("{{{}:{}}}", Value::String(self.text()), self.value()),
            _ => Value::String(self.text()).to_string(),
        }
    }
}
