//! A moment as people type it, and windows of time.

use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};

use crate::time::can_be_held;
use crate::ui::texts::Audit;

/// `2025-01-31T10:05` or `2025-01-31`, both in UTC, or with a zone of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When(pub(super) Timestamp);

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let utc = |civil: DateTime| civil.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp());
        let found = text.parse().or_else(|_| text.parse().and_then(utc));
        let found = found.or_else(|_| {
            text.parse::<Date>().and_then(|day| utc(day.to_datetime(jiff::civil::Time::midnight())))
        });
        let found = found.ok().filter(can_be_held);
        found
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no time: as in 2025-01-31T10:05, in UTC"))
    }
}

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl When {
    /// As a field of a form takes it.
    pub(super) fn field(self) -> String {
        self.0.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M").to_string()
    }
}

/// How far back a report looks.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Window {
    hours: Option<i64>,
    pub(super) since: Option<When>,
}

pub(super) const LONGEST: i64 = 24 * 366;

impl Window {
    pub(super) fn hours(self, usual: i64) -> i64 {
        self.hours.unwrap_or(usual).clamp(1, LONGEST)
    }

    pub(super) fn begin(self, now: Timestamp, usual: i64) -> Timestamp {
        let back = SignedDuration::from_hours(self.hours(usual));
        let begin = now.saturating_sub(back).unwrap_or(Timestamp::MIN);
        self.since.map_or(begin, |since| since.0)
    }

    /// The same as the query of an address, of ours and of the API.
    pub(super) fn text(self, usual: i64) -> String {
        match self.since {
            Some(since) => format!("since={}", since.0),
            None => format!("hours={}", self.hours(usual)),
        }
    }

    /// What can be chosen; what was asked for by an address is among it.
    pub(super) fn choices(self, usual: i64, t: &Audit) -> Vec<(i64, String, bool)> {
        let known = [
            (1, t.hour_1),
            (6, t.hour_6),
            (24, t.hour_24),
            (72, t.hour_72),
            (168, t.hour_168),
            (720, t.hour_720),
        ];
        let hours = self.hours(usual);
        let mut all: Vec<(i64, String, bool)> =
            known.iter().map(|(of, name)| (*of, (*name).to_owned(), *of == hours)).collect();
        if !known.iter().any(|(of, _)| *of == hours) {
            all.push((hours, format!("{hours} h"), true));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_people_and_browsers_write_it() {
        for (text, time) in [
            ("2025-01-31", "2025-01-31T00:00:00Z"),
            ("2025-01-31T10:05", "2025-01-31T10:05:00Z"),
            ("2025-01-31T10:05:06", "2025-01-31T10:05:06Z"),
            ("2025-01-31 10:05", "2025-01-31T10:05:00Z"),
            ("2025-01-31T10:05:00-03:00", "2025-01-31T13:05:00Z"),
        ] {
            assert_eq!(text.parse(), Ok(When(time.parse().unwrap())), "{text}");
        }
        for text in ["", "now", "2025-02-30", "99999-01-01", "10:05", "2025-01-31T25:00"] {
            assert!(text.parse::<When>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_window_is_within_a_year_and_says_what_it_is() {
        let now: Timestamp = "2025-02-01T00:00:00Z".parse().unwrap();
        let window = |hours| Window { hours, since: None };
        assert_eq!(window(None).begin(now, 24).to_string(), "2025-01-31T00:00:00Z");
        assert_eq!(window(Some(-5)).hours(24), 1);
        assert_eq!(window(Some(i64::MAX)).text(24), format!("hours={LONGEST}"));
        let since = Some("2025-01-01".parse().unwrap());
        assert_eq!(Window { hours: None, since }.text(24), "since=2025-01-01T00:00:00Z");
    }
}
