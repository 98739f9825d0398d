//! JSON, written fast and in any order of keys.
//!
//! The real API gives the keys of its objects in another order from response to response, the same
//! throughout one response, and writes amounts with four decimals. A serialiser that goes through
//! values does neither, and is too slow to serve thousands of pages a second: here each field is
//! written once into the buffer, and the fields of an object change places when it closes.

use std::ops::Range;

use crate::day::Day;
use crate::dice::Dice;

/// How the keys of the objects stand.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Order {
    /// As written.
    Written,
    /// By name: the canonical form.
    Sorted,
    /// As this number has it.
    Shuffled(u64),
}

#[derive(Debug)]
struct Field {
    name: &'static str,
    place: Range<usize>,
}

/// A buffer to write into.
#[derive(Debug)]
pub(crate) struct Writer {
    done: Vec<u8>,
    /// The object that is being written; it moves to `done`, its fields in order, when it closes.
    out: Vec<u8>,
    order: Order,
    /// The fields of the objects that are open, the innermost last.
    fields: Vec<Field>,
    /// Where an object within another is put together anew.
    copy: Vec<u8>,
    /// The order of an object by its number of fields, made when it is first needed.
    shuffles: Vec<Vec<usize>>,
}

impl Writer {
    pub(crate) fn new(order: Order, capacity: usize) -> Self {
        Self {
            done: Vec::with_capacity(capacity),
            out: Vec::with_capacity(8192),
            order,
            fields: Vec::with_capacity(64),
            copy: Vec::with_capacity(1024),
            shuffles: Vec::new(),
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.done
    }

    pub(crate) fn len(&self) -> usize {
        self.done.len() + self.out.len()
    }

    /// Text between the outermost objects.
    pub(crate) fn between(&mut self, text: &str) {
        self.done.extend_from_slice(text.as_bytes());
    }

    fn plain(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// An object by itself.
    pub(crate) fn record(&mut self, fill: impl FnOnce(&mut Self)) {
        self.fields.clear();
        self.out.clear();
        fill(self);
        self.done.push(b'{');
        let mut done = std::mem::take(&mut self.done);
        self.arrange(0, &mut done);
        close(&mut done);
        self.done = done;
        self.out.clear();
    }

    /// An object within another.
    pub(crate) fn object(&mut self, fill: impl FnOnce(&mut Self)) {
        let first = self.fields.len();
        self.out.push(b'{');
        let start = self.out.len();
        fill(self);
        let mut copy = std::mem::take(&mut self.copy);
        copy.clear();
        self.arrange(first, &mut copy);
        self.out.truncate(start);
        self.out.extend_from_slice(&copy);
        self.copy = copy;
        self.fields.truncate(first);
        close(&mut self.out);
    }

    /// Copies the fields from the `first` on in their order.
    fn arrange(&mut self, first: usize, to: &mut Vec<u8>) {
        let fields = &self.fields[first..];
        let mut add = |field: &Field| to.extend_from_slice(&self.out[field.place.clone()]);
        match self.order {
            Order::Written => fields.iter().for_each(add),
            Order::Sorted => {
                let mut sorted: Vec<&Field> = fields.iter().collect();
                sorted.sort_by_key(|field| field.name);
                sorted.into_iter().for_each(add);
            }
            Order::Shuffled(number) => {
                while self.shuffles.len() <= fields.len() {
                    self.shuffles.push(shuffle(number, self.shuffles.len()));
                }
                self.shuffles[fields.len()].iter().for_each(|place| add(&fields[*place]));
            }
        }
    }

    /// A field, its value as `write` gives it.
    #[inline]
    pub(crate) fn field(&mut self, name: &'static str, write: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        self.out.reserve(name.len() + 64);
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        write(self);
        self.out.push(b',');
        self.fields.push(Field { name, place: start..self.out.len() });
    }

    pub(crate) fn nested(&mut self, name: &'static str, fill: impl FnOnce(&mut Self)) {
        self.field(name, |writer| writer.object(fill));
    }

    /// A list of objects.
    pub(crate) fn list(
        &mut self,
        name: &'static str,
        count: usize,
        mut fill: impl FnMut(&mut Self, usize),
    ) {
        self.field(name, |writer| {
            writer.plain("[");
            for index in 0..count {
                if index > 0 {
                    writer.plain(",");
                }
                writer.object(|writer| fill(writer, index));
            }
            writer.plain("]");
        });
    }

    pub(crate) fn null(&mut self, name: &'static str) {
        self.field(name, |writer| writer.plain("null"));
    }

    pub(crate) fn flag(&mut self, name: &'static str, value: bool) {
        self.field(name, |writer| writer.plain(if value { "true" } else { "false" }));
    }

    pub(crate) fn int(&mut self, name: &'static str, value: u64) {
        self.field(name, |writer| digits(&mut writer.out, value, 1));
    }

    /// An amount in ten-thousandths, with the four decimals of the wire.
    pub(crate) fn amount(&mut self, name: &'static str, value: u64) {
        self.field(name, |writer| {
            digits(&mut writer.out, value / 10_000, 1);
            writer.out.push(b'.');
            digits(&mut writer.out, value % 10_000, 4);
        });
    }

    /// A text that needs no escaping; ours do not.
    #[inline]
    pub(crate) fn text(&mut self, name: &'static str, text: &str) {
        debug_assert!(
            !text.as_bytes().iter().any(|byte| must_escape(*byte)),
            "{text:?} needs escaping"
        );
        self.pieces(name, |out| out.extend_from_slice(text.as_bytes()));
    }

    /// A text in pieces that need no escaping, or have it already.
    #[inline]
    pub(crate) fn pieces(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        self.field(name, |writer| {
            writer.out.push(b'"');
            write(&mut writer.out);
            writer.out.push(b'"');
        });
    }

    pub(crate) fn date(&mut self, name: &'static str, day: Day) {
        self.pieces(name, |out| out.extend_from_slice(&date(day)));
    }

    /// A local time of the day, in seconds after midnight.
    pub(crate) fn time(&mut self, name: &'static str, day: Day, second: u64) {
        let mut text = *b"0000-00-00T00:00:00";
        text[..10].copy_from_slice(&date(day));
        two_digits(&mut text[11..], second / 3600 % 24);
        two_digits(&mut text[14..], second / 60 % 60);
        two_digits(&mut text[17..], second % 60);
        self.pieces(name, |out| out.extend_from_slice(&text));
    }
}

/// Each field ends in a comma; the last one's is the place for the brace.
fn close(out: &mut Vec<u8>) {
    match out.last_mut() {
        Some(last) if *last == b',' => *last = b'}',
        _ => out.push(b'}'),
    }
}

fn shuffle(number: u64, count: usize) -> Vec<usize> {
    let mut dice = Dice::of(&[number, count as u64]);
    let mut places: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        places.swap(last, dice.below(last as u64 + 1) as usize);
    }
    places
}

/// A number, with zeros before it where it has fewer than `width` digits.
pub(crate) fn digits(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut buffer = [b'0'; 20];
    let mut start = buffer.len();
    while value > 0 {
        start -= 1;
        buffer[start] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    let start = start.min(buffer.len() - width.clamp(1, 20));
    out.extend_from_slice(&buffer[start..]);
}

fn date(day: Day) -> [u8; 10] {
    let (year, month, of_month) = day.civil();
    let year = u64::from(year.unsigned_abs());
    let mut text = *b"0000-00-00";
    two_digits(&mut text, year / 100);
    two_digits(&mut text[2..], year);
    two_digits(&mut text[5..], month.into());
    two_digits(&mut text[8..], of_month.into());
    text
}

/// The last two digits of a number, at the start of a text.
fn two_digits(text: &mut [u8], value: u64) {
    text[0] = b'0' + (value / 10 % 10) as u8;
    text[1] = b'0' + (value % 10) as u8;
}

const fn must_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// A text between quotes, escaped where it must be and only there.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(place) = rest.iter().position(|byte| must_escape(*byte)) {
        out.extend_from_slice(&rest[..place]);
        match rest[place] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(order: Order) -> String {
        let mut writer = Writer::new(order, 64);
        writer.record(|writer| {
            writer.int("b", 7);
            writer.nested("a", |writer| {
                writer.amount("z", 300_000_000);
                writer.amount("y", 167);
            });
            writer.list("d", 2, |writer, index| writer.int("n", index as u64));
            writer.null("c");
            writer.nested("e", |_| {});
            writer.time("f", Day::parse("20240701").unwrap(), 3661);
        });
        String::from_utf8(writer.finish()).unwrap()
    }

    #[test]
    fn fields_stand_as_the_order_has_it_and_amounts_keep_four_decimals() {
        let written = r#"{"b":7,"a":{"z":30000.0000,"y":0.0167},"d":[{"n":0},{"n":1}],"c":null,"e":{},"f":"2024-07-01T01:01:01"}"#;
        assert_eq!(sample(Order::Written), written);
        let sorted = r#"{"a":{"y":0.0167,"z":30000.0000},"b":7,"c":null,"d":[{"n":0},{"n":1}],"e":{},"f":"2024-07-01T01:01:01"}"#;
        assert_eq!(sample(Order::Sorted), sorted);
        assert_ne!(sample(Order::Shuffled(1)), sample(Order::Shuffled(2)));
        assert_eq!(sample(Order::Shuffled(1)).len(), written.len());
    }

    proptest! {
        #[test]
        fn texts_are_escaped_as_serde_does_it(text in any::<String>()) {
            let mut out = Vec::new();
            quoted(&mut out, &text);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn numbers_are_written_as_they_are(value in any::<u64>(), width in 0_usize..20) {
            let mut out = Vec::new();
            digits(&mut out, value, width);
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("{value:0width$}"));
        }
    }
}
