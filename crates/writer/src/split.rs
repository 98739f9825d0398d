//! Finds the elements of an array in bytes as they arrive, and gives each of them verbatim.
//!
//! The bytes are looked at once: along the path from the root to the array by a small machine, within
//! values only for strings and brackets. A value that is whole is then judged by serde_json, so that
//! nothing passes that is not JSON, wherever it was cut on its way here. One that is longer than it
//! may be is passed over without being kept, and only its brackets and strings are looked at.

use memchr::memchr2;
use serde_json::value::RawValue;

/// An element, or the place of one that was too long to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Element(&'a str),
    TooLong { bytes: u64 },
}

/// Why the bytes have no array at the path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the source is empty")]
    Empty,
    #[error("the source is not JSON at byte {at}: {why}")]
    NotJson { at: u64, why: String },
    #[error("the source ends at byte {at}, in the middle of a value")]
    Truncated { at: u64 },
    #[error("there is no {path:?} in the source")]
    NoSuchPath { path: String },
    #[error("{path:?} is {found} in the source, not {wanted}")]
    WrongKind { path: String, found: &'static str, wanted: &'static str },
    #[error("{path:?} stands twice in the source")]
    Twice { path: String },
}

/// Where in the document the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the root, after so many bytes of a mark that some put before UTF-8.
    Start(usize),
    /// In an object on the way: a key, or its end.
    Key {
        is_first: bool,
    },
    InKey,
    Colon {
        is_wanted: bool,
    },
    Value {
        is_wanted: bool,
    },
    Passing,
    AfterValue,
    /// In the array.
    Item {
        is_first: bool,
    },
    InItem,
    AfterItem,
    /// No array: one value after the other, as in JSON lines.
    Line,
    InLine,
    End,
}

const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

#[derive(Debug)]
pub struct Splitter {
    path: Vec<String>,
    longest: usize,
    state: State,
    /// Of each object that is open on the way, whether its key was found.
    found: Vec<bool>,
    scan: Scan,
    /// What came before of the value that goes on.
    kept: Vec<u8>,
    /// How long the value is that is too long.
    passed_over: Option<u64>,
    at: u64,
    index: u64,
}

impl Splitter {
    /// Of the array at `path` (a name for each object on the way; none is the root), with elements of
    /// at most `longest` bytes.
    pub fn new(path: Vec<String>, longest: usize) -> Self {
        Self {
            path,
            longest,
            state: State::Start(0),
            found: Vec::new(),
            scan: Scan::default(),
            kept: Vec::new(),
            passed_over: None,
            at: 0,
            index: 0,
        }
    }

    /// Takes the next bytes; each element that ends in them goes to `sink` with its index.
    pub fn feed<E: From<Malformed>>(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(u64, Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            let taken = match self.state {
                State::InKey | State::Passing | State::InItem | State::InLine => {
                    self.within(rest, sink)?
                }
                _ if is_space(byte) && !matches!(self.state, State::Start(1..)) => 1,
                State::Start(seen) => self.start(byte, seen)?,
                State::Key { is_first } => self.key(byte, is_first)?,
                State::Colon { is_wanted } => self.colon(byte, is_wanted)?,
                State::Value { is_wanted } => self.value(byte, is_wanted)?,
                State::AfterValue => self.after_value(byte)?,
                State::Item { is_first } => self.item(byte, is_first)?,
                State::AfterItem => self.after_item(byte)?,
                State::Line => self.begin(byte, State::InLine)?,
                State::End => return Err(self.wrong("something stands after the end").into()),
            };
            self.at += taken as u64;
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// There are no more bytes.
    pub fn finish<E: From<Malformed>>(
        &mut self,
        sink: &mut impl FnMut(u64, Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.state == State::InLine && self.scan.kind == Kind::Scalar {
            let kept = std::mem::take(&mut self.kept);
            self.whole(&kept, sink)?;
        }
        match self.state {
            State::End | State::Line => Ok(()),
            State::Start(_) => Err(Malformed::Empty.into()),
            _ => Err(Malformed::Truncated { at: self.at }.into()),
        }
    }

    fn start(&mut self, byte: u8, seen: usize) -> Result<usize, Malformed> {
        if byte == MARK[seen.min(2)] && self.at == seen as u64 {
            self.state = State::Start(if seen == 2 { 0 } else { seen + 1 });
            return Ok(1);
        }
        if seen > 0 {
            return Err(self.wrong("it begins with half a byte order mark"));
        }
        match (byte, self.path.first()) {
            (b'[', None) => self.state = State::Item { is_first: true },
            (_, None) => return self.begin(byte, State::InLine),
            (b'{', Some(_)) => self.open(),
            (_, Some(_)) => {
                // Nonsense is told as such.
                self.begin(byte, State::InLine)?;
                let (found, wanted) = (kind_of(byte), "an object");
                return Err(Malformed::WrongKind { path: String::new(), found, wanted });
            }
        }
        Ok(1)
    }

    fn open(&mut self) {
        self.found.push(false);
        self.state = State::Key { is_first: true };
    }

    fn key(&mut self, byte: u8, is_first: bool) -> Result<usize, Malformed> {
        match byte {
            b'"' => self.begin(byte, State::InKey),
            b'}' if is_first => self.close(),
            _ => Err(self.wrong("a key was expected")),
        }
    }

    fn colon(&mut self, byte: u8, is_wanted: bool) -> Result<usize, Malformed> {
        if byte != b':' {
            return Err(self.wrong("a colon was expected"));
        }
        self.state = State::Value { is_wanted };
        Ok(1)
    }

    fn value(&mut self, byte: u8, is_wanted: bool) -> Result<usize, Malformed> {
        if !is_wanted {
            return self.begin(byte, State::Passing);
        }
        let is_last = self.found.len() == self.path.len();
        match byte {
            b'[' if is_last => self.state = State::Item { is_first: true },
            b'{' if !is_last => self.open(),
            _ => {
                self.begin(byte, State::Passing)?;
                let (path, found) = (self.way(self.found.len()), kind_of(byte));
                let wanted = if is_last { "an array" } else { "an object" };
                return Err(Malformed::WrongKind { path, found, wanted });
            }
        }
        Ok(1)
    }

    fn after_value(&mut self, byte: u8) -> Result<usize, Malformed> {
        match byte {
            b',' => self.state = State::Key { is_first: false },
            b'}' => return self.close(),
            _ => return Err(self.wrong("a comma or the end of the object was expected")),
        }
        Ok(1)
    }

    fn close(&mut self) -> Result<usize, Malformed> {
        let depth = self.found.len();
        if self.found.pop() != Some(true) {
            return Err(Malformed::NoSuchPath { path: self.way(depth) });
        }
        self.state = if self.found.is_empty() { State::End } else { State::AfterValue };
        Ok(1)
    }

    fn item(&mut self, byte: u8, is_first: bool) -> Result<usize, Malformed> {
        match byte {
            b']' if is_first => self.end_array(),
            _ => return self.begin(byte, State::InItem),
        }
        Ok(1)
    }

    fn after_item(&mut self, byte: u8) -> Result<usize, Malformed> {
        match byte {
            b',' => self.state = State::Item { is_first: false },
            b']' => self.end_array(),
            _ => return Err(self.wrong("a comma or the end of the array was expected")),
        }
        Ok(1)
    }

    fn end_array(&mut self) {
        self.state = if self.found.is_empty() { State::End } else { State::AfterValue };
    }

    /// A value begins; none of its bytes is taken yet.
    fn begin(&mut self, byte: u8, state: State) -> Result<usize, Malformed> {
        let Some(kind) = Kind::of(byte) else {
            return Err(self.wrong("a value was expected"));
        };
        self.scan = Scan { kind, ..Scan::default() };
        self.kept.clear();
        self.passed_over = None;
        self.state = state;
        Ok(0)
    }

    /// Goes on with a value up to its end, or up to the end of the bytes.
    fn within<E: From<Malformed>>(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(u64, Piece<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let end = self.scan.end(bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if let Some(length) = &mut self.passed_over {
            *length += part.len() as u64;
        } else if self.kept.len() + part.len() > self.longest {
            self.passed_over = Some((self.kept.len() + part.len()) as u64);
            self.kept = Vec::new();
        } else if end.is_none() || !self.kept.is_empty() {
            self.kept.extend_from_slice(part);
        }
        if end.is_some() {
            let kept = std::mem::take(&mut self.kept);
            let text = if kept.is_empty() { part } else { &kept };
            self.whole(text, sink)?;
            // Its room serves the next one.
            self.kept = kept;
        }
        Ok(part.len())
    }

    /// The value has ended: `text` is all of it, unless it is too long.
    fn whole<E: From<Malformed>>(
        &mut self,
        text: &[u8],
        sink: &mut impl FnMut(u64, Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let piece = match self.passed_over {
            Some(bytes) => Piece::TooLong { bytes },
            None => Piece::Element(self.judge(text)?),
        };
        self.state = match self.state {
            State::InKey => self.has_key(piece)?,
            State::InItem => State::AfterItem,
            State::InLine => State::Line,
            _ => State::AfterValue,
        };
        if matches!(self.state, State::AfterItem | State::Line) {
            let index = self.index;
            self.index += 1;
            sink(index, piece)?;
        }
        Ok(())
    }

    fn judge<'a>(&self, text: &'a [u8]) -> Result<&'a str, Malformed> {
        let text = std::str::from_utf8(text).map_err(|_| self.wrong("it is not UTF-8"))?;
        match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => Ok(text),
            Err(error) => {
                let error = error.to_string();
                let why = error.split(" at line").next().unwrap_or_default();
                Err(self.wrong(&format!("{why} (element {})", self.index)))
            }
        }
    }

    fn has_key(&mut self, key: Piece<'_>) -> Result<State, Malformed> {
        let name = match key {
            Piece::TooLong { .. } => None,
            Piece::Element(text) => match serde_json::from_str::<String>(text) {
                Ok(name) => Some(name),
                Err(_) => return Err(self.wrong("a key is not Unicode")),
            },
        };
        let depth = self.found.len();
        let is_wanted = name.is_some() && self.path.get(depth.wrapping_sub(1)) == name.as_ref();
        if is_wanted
            && let Some(found) = self.found.last_mut()
            && std::mem::replace(found, true)
        {
            return Err(Malformed::Twice { path: self.way(depth) });
        }
        Ok(State::Colon { is_wanted })
    }

    /// The path as far as it was gone.
    fn way(&self, depth: usize) -> String {
        self.path[..depth.min(self.path.len())].join(".")
    }

    fn wrong(&self, why: &str) -> Malformed {
        Malformed::NotJson { at: self.at, why: why.to_owned() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Scalar,
    String,
    Container,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        match byte {
            b'{' | b'[' => Some(Self::Container),
            b'"' => Some(Self::String),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Some(Self::Scalar),
            _ => None,
        }
    }
}

fn kind_of(byte: u8) -> &'static str {
    match byte {
        b'{' => "an object",
        b'[' => "an array",
        b'"' => "a string",
        b'n' => "null",
        b't' | b'f' => "a boolean",
        _ => "a number",
    }
}

/// How far a value has come.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    kind: Kind,
    depth: u32,
    in_string: bool,
    is_escaped: bool,
}

impl Scan {
    /// Where the value ends in these bytes, if it does.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.kind == Kind::Scalar {
            return bytes.iter().position(|&byte| !is_of_scalar(byte));
        }
        let mut at = 0;
        while at < bytes.len() {
            if !self.in_string {
                let next = bytes[at..].iter().position(|&byte| is_of_structure(byte))?;
                at += next + 1;
                match bytes[at - 1] {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                    _ => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return Some(at);
                        }
                    }
                }
            } else if self.is_escaped {
                self.is_escaped = false;
                at += 1;
            } else {
                at += memchr2(b'"', b'\\', &bytes[at..])? + 1;
                if bytes[at - 1] == b'\\' {
                    self.is_escaped = true;
                } else {
                    self.in_string = false;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
            }
        }
        None
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn is_of_scalar(byte: u8) -> bool {
    !is_space(byte) && !matches!(byte, b',' | b':' | b'"') && !is_of_structure(byte)
}

fn is_of_structure(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')
}
