//! A task's state in the visitor's language.

use std::borrow::Cow;

use lavra_tasks::machine::{CANCELLED_BY_USER, QUEUED};
use lavra_tasks::model::Status;

use crate::ui::texts::Tasks as Words;

/// A state as it is shown: the class that colours it, and its word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Badge {
    pub(crate) slug: &'static str,
    pub(crate) name: &'static str,
}

pub(crate) fn badge(status: Status, t: &Words) -> Badge {
    let name = match status {
        Status::Pending => t.one_pending,
        Status::InProgress => t.one_in_progress,
        Status::Completed => t.one_completed,
        Status::Failed => t.one_failed,
        Status::Cancelled => t.one_cancelled,
    };
    Badge { slug: slug(status), name }
}

/// As addresses and styles have it.
pub(super) fn slug(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::InProgress => "in_progress",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
    }
}

/// Of several.
pub(super) fn plural(status: Status, t: &Words) -> &'static str {
    match status {
        Status::Pending => t.many_pending,
        Status::InProgress => t.many_in_progress,
        Status::Completed => t.many_completed,
        Status::Failed => t.many_failed,
        Status::Cancelled => t.many_cancelled,
    }
}

/// The step that a task says it is at. What tasks of the program say is translated; what a worker of
/// somebody else says is shown as it is.
pub(crate) fn step<'a>(state: &'a str, t: &Words) -> Cow<'a, str> {
    match state {
        QUEUED => t.step_queued.into(),
        "Started" => t.step_started.into(),
        "Completed" => t.step_completed.into(),
        "Failed" => t.step_failed.into(),
        CANCELLED_BY_USER => t.step_cancelled.into(),
        other => counted(other, t).map_or(Cow::Borrowed(other), Cow::Owned),
    }
}

/// `Retry 2/3 at 10:05:00`, `Fetching pages 120/400`.
fn counted(state: &str, t: &Words) -> Option<String> {
    if let Some((count, at)) = state.strip_prefix("Retry ").and_then(|rest| rest.split_once(" at "))
    {
        return Some(format!("{} {count} {} {at}", t.step_retry, t.step_at));
    }
    let named = [("Fetching pages ", t.step_fetching), ("Discovering ", t.step_discovering)];
    named
        .into_iter()
        .find_map(|(english, word)| Some(format!("{word} {}", state.strip_prefix(english)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::texts::Language;

    #[test]
    fn the_program_s_own_steps_are_translated_and_others_are_not() {
        let (pt, en) = (Words::of(Language::Portuguese), Words::of(Language::English));
        for (state, portuguese) in [
            ("Queued", "Na fila"),
            ("Retry 2/3 at 10:05:00", "Nova tentativa 2/3 às 10:05:00"),
            ("Fetching pages 120/400", "Buscando páginas 120/400"),
            ("Retry of mine", "Retry of mine"),
            ("<b>", "<b>"),
        ] {
            assert_eq!(step(state, pt), portuguese);
            assert_eq!(step(state, en), state);
        }
    }
}
