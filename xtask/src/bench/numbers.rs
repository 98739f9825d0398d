//! Numbers: out of what a driver printed, over several rounds, and for people to read.

use anyhow::{Context, Result};
use serde_json::Value;

/// A number that a driver printed under this name.
pub(crate) fn field(printed: &Value, name: &str) -> Result<f64> {
    printed[name].as_f64().with_context(|| format!("the driver gave no {name}: {printed}"))
}

/// Several rounds of the same measurement become their median.
pub(crate) fn median(rounds: &[f64]) -> Option<f64> {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// A whole number with its thousands apart.
pub(crate) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_median_is_one_of_the_rounds() {
        assert_eq!(median(&[7.0, 1.0, 9.0]), Some(7.0));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_figure_that_is_missing_is_an_error() {
        assert!(field(&json!({ "publish": 1 }), "publish_per_s").is_err());
        assert_eq!(field(&json!({ "rate": 2 }), "rate").ok(), Some(2.0));
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(thousands(1_234_567.4), "1 234 567");
        assert_eq!(thousands(999.0), "999");
    }
}
