//! A calendar day as a number. Every page looks at each day of its window, and every record writes
//! a handful of dates, so this is arithmetic and not a calendar.

use jiff::civil::Date;

/// Days since 1970-01-01.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Day(i32);

const EPOCH: Date = Date::constant(1970, 1, 1);

impl Day {
    pub(crate) const fn number(self) -> i32 {
        self.0
    }

    pub(crate) const fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// From this day to the other.
    pub(crate) const fn until(self, other: Self) -> i32 {
        other.0.saturating_sub(self.0)
    }

    /// All days up to and with `last`.
    pub(crate) fn through(self, last: Self) -> impl DoubleEndedIterator<Item = Self> + Clone {
        (self.0..=last.0).map(Self)
    }

    /// Year, month and day of the month (Howard Hinnant's `civil_from_days`).
    pub(crate) const fn civil(self) -> (i32, u32, u32) {
        let shifted = self.0 + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + (month <= 2) as i32;
        (year, month as u32, day as u32)
    }

    pub(crate) const fn year(self) -> i32 {
        self.civil().0
    }

    /// From 0, on 1 January.
    pub(crate) fn of_year(self) -> i32 {
        Self::first_of(self.year()).until(self)
    }

    pub(crate) const fn is_weekend(self) -> bool {
        (self.0 + 3).rem_euclid(7) >= 5
    }

    /// 1 January; the years that dates cannot say are taken as the nearest that they can.
    pub(crate) fn first_of(year: i32) -> Self {
        let year = i16::try_from(year.clamp(-9999, 9999)).unwrap_or_default();
        Date::new(year, 1, 1).map_or(Self(0), Self::from)
    }

    /// `yyyyMMdd`, and nothing else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let year = text[..4].parse().ok()?;
        let month = text[4..6].parse().ok()?;
        let day = text[6..].parse().ok()?;
        Date::new(year, month, day).ok().map(Self::from)
    }
}

impl From<Date> for Day {
    fn from(date: Date) -> Self {
        Self((date.duration_since(EPOCH).as_hours() / 24) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;

    #[test]
    fn days_agree_with_the_calendar() {
        for number in (-30_000..60_000).step_by(7) {
            let date = EPOCH.checked_add(number.days()).unwrap();
            let day = Day::from(date);
            assert_eq!(day.number(), number);
            let (year, month, of_month) = day.civil();
            assert_eq!(format!("{year:04}-{month:02}-{of_month:02}"), date.to_string());
            assert_eq!(day.of_year() + 1, i32::from(date.day_of_year()));
            assert_eq!(day.is_weekend(), date.weekday().to_monday_zero_offset() >= 5);
            assert_eq!(Day::parse(&format!("{year:04}{month:02}{of_month:02}")), Some(day));
        }
    }

    #[test]
    fn only_eight_digits_of_a_real_day_are_a_day() {
        for text in ["", "2024-07-01", "01/07/2024", "20240230", "202407010", "２024070"] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }
}
