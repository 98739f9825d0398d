//! The states of the plan in the visitor's language.

use lavra_extract::model::Status;

use crate::ui::format::Format;
use crate::ui::texts::Extractions as Words;

/// As addresses and styles have it.
pub(super) fn slug(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Discovering => "discovering",
        Status::Fetching => "fetching",
        Status::Partial => "partial",
        Status::Complete => "complete",
        Status::Failed => "failed",
    }
}

pub(super) fn parse(slug_text: &str) -> Option<Status> {
    Status::ALL.into_iter().find(|status| slug(*status) == slug_text)
}

/// Of one.
pub(super) fn name(status: Status, t: &Words) -> &'static str {
    match status {
        Status::Pending => t.one_pending,
        Status::Discovering => t.one_discovering,
        Status::Fetching => t.one_fetching,
        Status::Partial => t.one_partial,
        Status::Complete => t.one_complete,
        Status::Failed => t.one_failed,
    }
}

/// Of several.
pub(super) fn plural(status: Status, t: &Words) -> &'static str {
    match status {
        Status::Pending => t.many_pending,
        Status::Discovering => t.many_discovering,
        Status::Fetching => t.many_fetching,
        Status::Partial => t.many_partial,
        Status::Complete => t.many_complete,
        Status::Failed => t.many_failed,
    }
}

/// What a small cell shows of a state, beside its colour.
pub(super) fn sign(status: Status) -> &'static str {
    match status {
        Status::Pending => "○",
        Status::Discovering => "◔",
        Status::Fetching => "▶",
        Status::Partial => "◐",
        Status::Complete => "✓",
        Status::Failed => "✕",
    }
}

/// `exact`, `short by 3` or `drifted by 2`, in a sentence.
pub(super) fn verdict(text: Option<&str>, t: &Words, format: &Format) -> String {
    let amount =
        |rest: &str| rest.parse::<i64>().map_or_else(|_| rest.into(), |n| format.number(n));
    let Some(text) = text else { return t.verdict_none.to_owned() };
    if text == "exact" {
        return t.verdict_exact.to_owned();
    }
    if let Some(rest) = text.strip_prefix("short by ") {
        return format!("{} {}", t.verdict_short, amount(rest));
    }
    if let Some(rest) = text.strip_prefix("drifted by ") {
        return format!("{} {}", t.verdict_drifted, amount(rest));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::texts::Language;

    #[test]
    fn a_verdict_is_a_sentence_in_either_language() {
        let words = Words::of(Language::Portuguese);
        let format = Format::new(Language::Portuguese);
        let say = |text| verdict(text, words, &format);
        assert_eq!(say(Some("short by 1234")), "faltam registros: 1.234");
        assert_eq!(say(Some("drifted by 2")), "o total mudou durante a busca; diferença: 2");
        assert!(say(Some("exact")).starts_with("exato"));
        assert_eq!(say(Some("<b>")), "<b>");
        assert_eq!(say(None), "ainda sem veredito");
    }

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for status in Status::ALL {
            assert_eq!(parse(slug(status)), Some(status));
        }
        assert_eq!(parse("PENDING"), None);
    }
}
