//! Months, the unit of the plan.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// A month of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    year: i16,
    month: i8,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no month: write 2024-01, or a day of it, 2024-01-31")]
pub struct NotAMonth(String);

impl Month {
    /// Before and after all that can be extracted.
    pub const FIRST: Self = Self { year: 1900, month: 1 };
    pub const LAST: Self = Self { year: 9999, month: 12 };

    pub fn of(date: Date) -> Self {
        Self { year: date.year(), month: date.month() }
    }

    pub fn first(self) -> Date {
        jiff::civil::date(self.year, self.month, 1)
    }

    pub fn last(self) -> Date {
        self.first().last_of_month()
    }

    pub fn year(self) -> i16 {
        self.year
    }

    /// The months from this one to `last`, both included.
    pub fn through(self, last: Self) -> impl Iterator<Item = Self> {
        let number = |month: Self| i32::from(month.year) * 12 + i32::from(month.month) - 1;
        (number(self)..=number(last)).map(|number| Self {
            year: number.div_euclid(12) as i16,
            month: number.rem_euclid(12) as i8 + 1,
        })
    }
}

impl FromStr for Month {
    type Err = NotAMonth;

    fn from_str(text: &str) -> Result<Self, NotAMonth> {
        let wrong = || NotAMonth(text.to_owned());
        let day = if text.len() == "2024-01".len() { format!("{text}-01") } else { text.into() };
        if day.len() != "2024-01-01".len() || day.starts_with(['-', '+']) {
            return Err(wrong());
        }
        day.parse().map(Self::of).map_err(|_| wrong())
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl Serialize for Month {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Month {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_read_from_itself_and_from_any_of_its_days() {
        let month: Month = "2024-02".parse().unwrap();
        assert_eq!("2024-02-29".parse(), Ok(month));
        assert_eq!(month.to_string(), "2024-02");
        assert_eq!(
            (month.first().to_string(), month.last().to_string()),
            ("2024-02-01".into(), "2024-02-29".into())
        );
        for wrong in [
            "",
            "2024",
            "2024-13",
            "2024-2",
            "24-02",
            "2023-02-29",
            "2024/02",
            "-024-02",
            "2024-02-01T00",
            "fev",
        ] {
            assert!(wrong.parse::<Month>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn months_follow_one_another_over_the_year() {
        let range = |from: &str, to: &str| {
            let (from, to): (Month, Month) = (from.parse().unwrap(), to.parse().unwrap());
            from.through(to).map(|month| month.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(range("2023-11", "2024-02"), ["2023-11", "2023-12", "2024-01", "2024-02"]);
        assert_eq!(range("2024-02", "2024-02"), ["2024-02"]);
        assert!(range("2024-03", "2024-02").is_empty());
    }
}
