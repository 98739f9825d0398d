//! How rows travel by COPY.

use std::borrow::Cow;

/// Adds a row in the text format of COPY.
pub(super) fn line<'a>(values: impl Iterator<Item = Option<Cow<'a, str>>>, lines: &mut Vec<u8>) {
    for (place, value) in values.enumerate() {
        if place > 0 {
            lines.push(b'\t');
        }
        match value {
            None => lines.extend_from_slice(b"\\N"),
            Some(text) => escape(text.as_bytes(), lines),
        }
    }
    lines.push(b'\n');
}

fn escape(text: &[u8], lines: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r'))
    {
        lines.extend_from_slice(&rest[..at]);
        lines.push(b'\\');
        lines.push(match rest[at] {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            other => other,
        });
        rest = &rest[at + 1..];
    }
    lines.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_copy_is_escaped() {
        let mut lines = Vec::new();
        let values = [Some("a\tb\\.\r\n"), None, Some(""), Some("\\N")];
        line(values.into_iter().map(|value| value.map(Cow::Borrowed)), &mut lines);
        assert_eq!(String::from_utf8(lines).unwrap(), "a\\tb\\\\.\\r\\n\t\\N\t\t\\\\N\n");
    }
}
