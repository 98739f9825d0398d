//! What a world is made from.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::endpoint::Endpoint;

/// All that decides what a world holds. Two worlds of one configuration hold the same.
#[derive(Clone, Copy, Debug)]
pub struct WorldConfig {
    pub seed: u64,
    /// A share of the real volumes: 1.0 is a contract month of some 180,000 records. No more than 1000.
    pub scale: f64,
    /// The time when the world begins; nothing is published after that day. The clock's, if none.
    pub now: Option<Timestamp>,
    /// One list of an exact size instead of all the others.
    pub fixed: Option<Fixed>,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self { seed: 1, scale: 1.0, now: None, fixed: None }
    }
}

impl WorldConfig {
    /// The same, within what can be counted.
    pub(crate) fn bounded(self) -> Self {
        let fixed = self.fixed.map(|fixed| Fixed {
            pages: fixed.pages.min(1_000_000_000_000),
            page_size: fixed.page_size.clamp(1, fixed.endpoint.page_cap()),
            ..fixed
        });
        Self { scale: self.scale.clamp(0.0, 1000.0), fixed, ..self }
    }
}

/// A world with a single month of a single list in it, for measuring.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    pub endpoint: Endpoint,
    /// The modalidade, where the endpoint has them.
    pub fan_out: u16,
    /// Any day of the month.
    pub month: Date,
    pub pages: u64,
    /// Records on a page: what clients are expected to ask for.
    pub page_size: u64,
    /// About how long a page is. Records have a length below which they do not get (some 1.5 KB), and
    /// bills and plans have their own.
    pub page_bytes: u64,
}

impl Default for Fixed {
    /// A thousand pages as the API's most read list has them.
    fn default() -> Self {
        Self {
            endpoint: Endpoint::ContratacoesPublicacao,
            fan_out: 6,
            month: Date::constant(2024, 7, 1),
            pages: 1000,
            page_size: 50,
            page_bytes: 87_000,
        }
    }
}
