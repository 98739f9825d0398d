//! Values that are judged while they are read, so that a wrong one is told before anything is opened.

use jiff::Timestamp;
use jiff::civil::Date;

/// A day as the interface takes it.
pub(super) fn day(text: &str) -> Result<Date, String> {
    let is_plain = text.len() == "2025-01-31".len();
    let day = text.parse().ok().filter(|day: &Date| is_plain && day.year() > 0);
    day.ok_or_else(|| "a day is written as in 2025-01-31".into())
}

/// A time with its zone.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "a time is written as in 2025-01-31T08:00:00Z".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_out_and_a_time_has_its_zone() {
        assert!(day("2024-02-29").is_ok() && time("2025-01-31T08:00:00-03:00").is_ok());
        for wrong in ["", "2023-02-29", "2024-2-29", "20240229", "0000-01-01", "31/01/2025", "é"] {
            assert!(day(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "2025-01-31", "2025-01-31T08:00:00", "now"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
