//! What Lavra means to reach beside its peers, line by line, and whether it did.

/// How a figure is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    AtLeast(f64),
    AtMost(f64),
    /// It is told, and nothing is asked of it.
    NoBar,
}

/// One line of the judgement: PASS, FAIL, or that it was not measured.
pub(crate) fn line(what: &str, value: Option<f64>, rule: Rule) -> String {
    let (wanted, met) = match rule {
        Rule::AtLeast(bar) => (format!("at least {bar}"), value.map(|value| value >= bar)),
        Rule::AtMost(bar) => (format!("at most {bar}"), value.map(|value| value <= bar)),
        Rule::NoBar => ("no bar".to_owned(), value.map(|_| true)),
    };
    let verdict = match (met, rule) {
        (None, _) => "not measured",
        (Some(_), Rule::NoBar) => "",
        (Some(true), _) => "PASS",
        (Some(false), _) => "FAIL",
    };
    let value = value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    format!("{what:<52}{value:>8}   {wanted:<14}{verdict}").trim_end().to_owned()
}

pub(crate) fn ratio(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? / other?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_or_missed_and_what_was_not_measured_is_said() {
        assert!(line("speed", Some(2.0), Rule::AtLeast(2.0)).ends_with("PASS"));
        assert!(line("speed", Some(1.99), Rule::AtLeast(2.0)).ends_with("FAIL"));
        assert!(line("memory", Some(0.31), Rule::AtMost(0.3)).ends_with("FAIL"));
        assert!(line("memory", None, Rule::AtMost(0.3)).ends_with("not measured"));
        assert!(line("beside", Some(7.0), Rule::NoBar).ends_with("7.00   no bar"));
    }

    #[test]
    fn a_ratio_needs_both() {
        assert_eq!(ratio(Some(3.0), Some(2.0)), Some(1.5));
        assert_eq!(ratio(None, Some(2.0)), None);
        assert_eq!(ratio(Some(3.0), None), None);
    }
}
