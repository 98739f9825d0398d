//! Which fault falls on a session, a job, a request or a write.

use super::{JobFaults, RequestFaults, SessionFaults, WriteFaults};
use crate::dice::Dice;

/// One draw against all shares in a row.
pub(in crate::fleet) fn draw<T: Copy>(kinds: &[(f64, T)], dice: &mut Dice) -> Option<T> {
    let mut drawn = dice.share();
    for (share, kind) in kinds {
        if drawn < *share {
            return Some(*kind);
        }
        drawn -= share;
    }
    None
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::fleet) enum SessionFault {
    Stuck,
    DisconnectedEarly,
    DisconnectedReady,
    DisconnectedScraping,
    Terminated,
    NeverReady,
    Unknown,
}

impl SessionFaults {
    pub(in crate::fleet) const fn kinds(&self) -> [(f64, SessionFault); 7] {
        [
            (self.stuck, SessionFault::Stuck),
            (self.disconnected_early, SessionFault::DisconnectedEarly),
            (self.disconnected_ready, SessionFault::DisconnectedReady),
            (self.disconnected_scraping, SessionFault::DisconnectedScraping),
            (self.terminated, SessionFault::Terminated),
            (self.never_ready, SessionFault::NeverReady),
            (self.unknown, SessionFault::Unknown),
        ]
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::fleet) enum JobFault {
    Fails,
    Cancelled,
    Pauses,
    Hangs,
    Vanishes,
    Empty,
    Unknown,
}

impl JobFaults {
    pub(in crate::fleet) const fn kinds(&self) -> [(f64, JobFault); 7] {
        [
            (self.fails, JobFault::Fails),
            (self.cancelled, JobFault::Cancelled),
            (self.pauses, JobFault::Pauses),
            (self.hangs, JobFault::Hangs),
            (self.vanishes, JobFault::Vanishes),
            (self.empty, JobFault::Empty),
            (self.unknown, JobFault::Unknown),
        ]
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::fleet) enum RequestFault {
    Html,
    Unauthorized,
    TooLarge,
    Unprocessable,
    TooMany,
    RetryAfter,
    ServerError,
    Refused,
    Timeout,
    Reset,
    Lost,
    Slow,
}

impl RequestFaults {
    pub(in crate::fleet) const fn kinds(&self) -> [(f64, RequestFault); 12] {
        [
            (self.html, RequestFault::Html),
            (self.unauthorized, RequestFault::Unauthorized),
            (self.too_large, RequestFault::TooLarge),
            (self.unprocessable, RequestFault::Unprocessable),
            (self.too_many, RequestFault::TooMany),
            (self.retry_after, RequestFault::RetryAfter),
            (self.server_error, RequestFault::ServerError),
            (self.refused, RequestFault::Refused),
            (self.timeout, RequestFault::Timeout),
            (self.reset, RequestFault::Reset),
            (self.lost, RequestFault::Lost),
            (self.slow, RequestFault::Slow),
        ]
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::fleet) enum WriteFault {
    Fails,
    Schema,
    Silent,
    Forgotten,
    Partial,
    Unknown,
}

impl WriteFaults {
    pub(in crate::fleet) const fn kinds(&self) -> [(f64, WriteFault); 6] {
        [
            (self.fails, WriteFault::Fails),
            (self.schema, WriteFault::Schema),
            (self.silent, WriteFault::Silent),
            (self.forgotten, WriteFault::Forgotten),
            (self.partial, WriteFault::Partial),
            (self.unknown, WriteFault::Unknown),
        ]
    }
}
