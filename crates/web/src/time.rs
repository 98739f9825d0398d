//! Days and moments that every database can hold.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use lavra_extract::Month;
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A day, as 2025-01-31, of the years from 1 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Day(pub(crate) Date);

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_plain = text.len() == "2025-01-31".len() && text.starts_with(|c: char| c != '-');
        let day = text.parse().ok().filter(|day: &Date| is_plain && day.year() > 0);
        let wrong = || de::Error::custom(format_args!("{text:?} is no day: as in 2025-01-31"));
        day.map(Self).ok_or_else(wrong)
    }
}

impl PartialSchema for Day {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Date);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Day {}

/// A moment (RFC 3339) of the years from 1 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) Timestamp);

/// The beginning of the year 1.
const FIRST_SECOND: i64 = -62_135_596_800;

/// Whether a moment is one that every database can hold.
pub(crate) fn can_be_held(moment: &Timestamp) -> bool {
    moment.as_second() >= FIRST_SECOND
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // A plus in a query is a space, and nobody writes it as %2B.
        let moment = text.replace(' ', "+").parse().or_else(|_| text.parse());
        let moment = moment.ok().filter(can_be_held);
        let wrong =
            || de::Error::custom(format_args!("{text:?} is no moment: as in 2025-01-31T10:00:00Z"));
        moment.map(Self).ok_or_else(wrong)
    }
}

impl PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Moment {}

/// A month, as 2024-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct YearMonth(pub(crate) Month);

impl<'de> Deserialize<'de> for YearMonth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let month = if text.len() == "2024-01".len() { text.parse().ok() } else { None };
        let wrong = || de::Error::custom(format_args!("{text:?} is no month: as in 2024-01"));
        month.map(Self).ok_or_else(wrong)
    }
}

impl PartialSchema for YearMonth {
    fn schema() -> RefOr<Schema> {
        let pattern = Some(r"^\d{4}-(0[1-9]|1[0-2])$");
        ObjectBuilder::new().schema_type(Type::String).pattern(pattern).into()
    }
}

impl ToSchema for YearMonth {}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
        let reader: StrDeserializer<'a, Error> = text.into_deserializer();
        T::deserialize(reader).ok()
    }

    #[test]
    fn a_day_is_written_out() {
        for good in ["0001-01-01", "2024-02-29", "9999-12-31"] {
            assert!(read::<Day>(good).is_some(), "{good}");
        }
        for bad in ["", "0000-01-01", "2023-02-29", "2024-2-29", "-009999-01-01", "20240229", "é"]
        {
            assert!(read::<Day>(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_month_is_a_month_and_no_day() {
        assert!(read::<YearMonth>("2024-12").is_some());
        for bad in ["", "2024-13", "2024-1", "2024-01-31", "-024-01"] {
            assert!(read::<YearMonth>(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_moment_has_a_zone_and_its_plus_may_have_become_a_space() {
        let noon: Timestamp = "2025-01-31T12:00:00Z".parse().unwrap();
        for good in
            ["2025-01-31T12:00:00Z", "2025-01-31T14:00:00+02:00", "2025-01-31T14:00:00 02:00"]
        {
            assert_eq!(read::<Moment>(good), Some(Moment(noon)), "{good}");
        }
        for bad in ["", "2025-01-31", "-009999-01-02T00:00:00Z", "0000-12-31T00:00:00Z", "now"] {
            assert!(read::<Moment>(bad).is_none(), "{bad}");
        }
    }
}
