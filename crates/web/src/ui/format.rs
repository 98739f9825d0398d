//! Numbers, times and durations as people read them.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::texts::{Common, Language};

/// How the visitor's language writes things, and what time it is.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    language: Language,
    now: Timestamp,
}

impl Format {
    pub(crate) fn new(language: Language) -> Self {
        Self { language, now: Timestamp::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// 12.345 or 12,345.
    pub(crate) fn number(&self, number: impl TryInto<i64>) -> String {
        let Ok(number) = number.try_into() else { return "…".into() };
        let separator = match self.language {
            Language::Portuguese => '.',
            Language::English => ',',
        };
        let digits = number.unsigned_abs().to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
        if number < 0 {
            text.push('−');
        }
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                text.push(separator);
            }
            text.push(digit);
        }
        text
    }

    /// `1 missão`, `2 missões`.
    pub(crate) fn counted(&self, number: i64, one: &str, many: &str) -> String {
        format!("{} {}", self.number(number), if number == 1 { one } else { many })
    }

    /// With one digit after the comma where it is small.
    pub(crate) fn decimal(&self, number: f64) -> String {
        if number.abs() >= 10.0 {
            return self.number(number.round() as i64);
        }
        let text = format!("{number:.1}");
        match self.language {
            Language::Portuguese => text.replace('.', ","),
            Language::English => text,
        }
    }

    /// 1,5 MiB.
    pub(crate) fn bytes(&self, bytes: i64) -> String {
        let mut amount = bytes as f64;
        let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
        let mut unit = units.next().unwrap_or_default();
        for larger in units {
            if amount < 1024.0 {
                break;
            }
            amount /= 1024.0;
            unit = larger;
        }
        if unit == "B" { format!("{bytes} B") } else { format!("{} {unit}", self.decimal(amount)) }
    }

    /// The moment, in UTC, to the second: `2025-01-31 10:05:00`.
    #[expect(clippy::unused_self, reason = "templates ask it like the others")]
    pub(crate) fn time(&self, time: Timestamp) -> String {
        time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// `10:05`.
    #[expect(clippy::unused_self, reason = "templates ask it like the others")]
    pub(crate) fn clock(&self, time: Timestamp) -> String {
        time.to_zoned(TimeZone::UTC).strftime("%H:%M").to_string()
    }

    /// For machines: the `datetime` of a `<time>`.
    #[expect(clippy::unused_self, reason = "templates ask it like the others")]
    pub(crate) fn iso(&self, time: Timestamp) -> String {
        time.to_string()
    }

    /// How long ago: `3 min`.
    pub(crate) fn ago(&self, time: Timestamp) -> String {
        let passed = self.now.duration_since(time);
        if passed.as_secs() < 1 {
            return Common::of(self.language).now.to_owned();
        }
        let text = self.span(passed);
        match self.language {
            Language::Portuguese => format!("há {text}"),
            Language::English => format!("{text} ago"),
        }
    }

    /// How long since, without a word for it.
    pub(crate) fn age(&self, time: Timestamp) -> String {
        self.span(self.now.duration_since(time))
    }

    /// `4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`: two units at most.
    pub(crate) fn span(&self, duration: SignedDuration) -> String {
        let seconds = duration.as_secs().max(0);
        let millis = duration.as_millis().max(0);
        let (large, unit, small, small_unit) = match seconds {
            0 => return format!("{millis} ms"),
            1..60 => return format!("{seconds} s"),
            60..3600 => (seconds / 60, "min", seconds % 60, "s"),
            3600..86_400 => (seconds / 3600, "h", seconds % 3600 / 60, "min"),
            _ => (seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
        };
        if small == 0 {
            return format!("{} {unit}", self.number(large));
        }
        format!("{} {unit} {small} {small_unit}", self.number(large))
    }

    pub(crate) fn millis(&self, millis: i64) -> String {
        self.span(SignedDuration::from_millis(millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_as_the_language_does() {
        let (pt, en) = (Format::new(Language::Portuguese), Format::new(Language::English));
        for (number, portuguese, english) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1000, "1.000", "1,000"),
            (1_234_567, "1.234.567", "1,234,567"),
            (-1000, "−1.000", "−1,000"),
            (i64::MIN, "−9.223.372.036.854.775.808", "−9,223,372,036,854,775,808"),
        ] {
            assert_eq!((pt.number(number), en.number(number)), (portuguese.into(), english.into()));
        }
        assert_eq!((pt.decimal(2.25), en.decimal(2.25)), ("2,2".into(), "2.2".into()));
        assert_eq!(pt.counted(1, "missão", "missões"), "1 missão");
        assert_eq!(pt.counted(1200, "missão", "missões"), "1.200 missões");
        assert_eq!(pt.counted(0, "missão", "missões"), "0 missões");
        assert_eq!((pt.bytes(1_572_864), en.bytes(900)), ("1,5 MiB".into(), "900 B".into()));
    }

    #[test]
    fn a_duration_has_two_units_at_most() {
        let format = Format::new(Language::English);
        for (seconds, text) in [
            (59, "59 s"),
            (60, "1 min"),
            (200, "3 min 20 s"),
            (3600, "1 h"),
            (7500, "2 h 5 min"),
            (273_600, "3 d 4 h"),
        ] {
            assert_eq!(format.span(SignedDuration::from_secs(seconds)), text);
        }
        assert_eq!(format.millis(40), "40 ms");
        assert_eq!(format.millis(-5), "0 ms");
    }
}
