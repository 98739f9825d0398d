//! What an API's answers mean where it is not the usual.

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub status: u16,
    /// Only on the first page, or only on later ones.
    pub page: Option<Which>,
    /// Only where the body has this text.
    pub contains: Option<String>,
    /// Only where there is no body.
    pub without_body: bool,
    pub means: Means,
    /// As a reason to try again for so many times, before it means what it says.
    pub after: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    First,
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// There is nothing.
    Empty,
    /// There is nothing any more: the total has shrunk.
    PastEnd,
    /// Trying again helps.
    Retry,
    /// Trying again does not help.
    Refused,
}

impl Rule {
    pub fn fits(&self, status: u16, page: i64, body: &[u8]) -> bool {
        self.status == status
            && self.page.is_none_or(|which| (which == Which::First) == (page == 1))
            && (!self.without_body || body.iter().all(u8::is_ascii_whitespace))
            && self.contains.as_ref().is_none_or(|text| contains(body, text.as_bytes()))
    }
}

/// Error texts are short, and so is the part of a body that is searched for one.
fn contains(body: &[u8], text: &[u8]) -> bool {
    const SEARCHED: usize = 16 * 1024;
    let body = &body[..body.len().min(SEARCHED)];
    body.windows(text.len()).any(|window| window == text)
}
