//! Every pair of state and happening, and random lives checked against what must always hold.
//! The checker is itself checked: a machine with a broken guard must not pass it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

type Machine = fn(&Snapshot, &Happening, Timestamp) -> Result<Next, Illegal>;

fn happenings() -> Vec<Happening> {
    let soon = Duration::from_secs(1);
    vec![
        Happening::Claim,
        Happening::Step { progress: 40, state: "Halfway".into(), detail: None },
        Happening::Step { progress: 20, state: "Late news".into(), detail: None },
        Happening::Complete,
        Happening::Fail { error: "no".into(), retry_in: Some(soon) },
        Happening::Fail { error: "never".into(), retry_in: None },
        Happening::Interrupt,
        Happening::Lose { reason: "gone".into(), retry_in: soon },
        Happening::Cancel { stop_within: soon },
        Happening::ConfirmStop,
        Happening::GiveUpStop,
        Happening::Retry,
        Happening::Bury { reason: "undeliverable".into() },
    ]
}

fn snapshot(status: Status, retry_count: i32, stopping: bool) -> Snapshot {
    Snapshot { status, progress: 30, retry_count, max_retries: 3, stopping }
}

/// The table of what may follow what, written out once more by hand.
fn allowed(from: &Snapshot, happening: &Happening) -> Option<Status> {
    use Status::{Cancelled, Completed, Failed, InProgress, Pending};
    let left = from.retry_count < from.max_retries;
    match (from.status, happening) {
        (Pending, Happening::Claim) | (InProgress, Happening::Step { .. }) => Some(InProgress),
        (Pending | InProgress, Happening::Cancel { .. }) => Some(Cancelled),
        (InProgress, Happening::Complete) => Some(Completed),
        (InProgress, Happening::Interrupt) | (Failed | Cancelled, Happening::Retry) => {
            Some(Pending)
        }
        (InProgress, Happening::Fail { retry_in: None, .. })
        | (Pending, Happening::Bury { .. }) => Some(Failed),
        (InProgress, Happening::Fail { .. } | Happening::Lose { .. }) => {
            Some(if left { Pending } else { Failed })
        }
        (Cancelled, Happening::ConfirmStop | Happening::GiveUpStop) if from.stopping => {
            Some(Cancelled)
        }
        _ => None,
    }
}

#[test]
fn every_state_and_happening_leads_where_the_table_says() {
    for status in Status::ALL {
        for (retry_count, stopping) in [(0, false), (3, false), (0, true), (3, true)] {
            let from = snapshot(status, retry_count, stopping);
            for happening in happenings() {
                let to = next(&from, &happening, Timestamp::UNIX_EPOCH).ok().map(|n| n.status);
                assert_eq!(to, allowed(&from, &happening), "{from:?} {happening:?}");
            }
        }
    }
}

#[test]
fn the_words_that_people_see() {
    let now: Timestamp = "2026-11-15T10:04:50Z".parse().unwrap();
    let running = Snapshot { retry_count: 1, ..snapshot(Status::InProgress, 0, false) };
    let fail =
        Happening::Fail { error: "HTTP 503".into(), retry_in: Some(Duration::from_secs(15)) };
    assert_eq!(next(&running, &fail, now).unwrap().state, "Retry 2/3 at 10:05:05");
    let cancel = Happening::Cancel { stop_within: Duration::from_secs(1) };
    assert_eq!(next(&running, &cancel, now).unwrap().state, "Cancelled by user");
    let error = next(&snapshot(Status::Completed, 0, false), &cancel, now).unwrap_err();
    assert_eq!(error.to_string(), "a task that is COMPLETED cannot be cancelled");
}

#[test]
fn a_person_s_retry_starts_from_nothing() {
    let failed = snapshot(Status::Failed, 3, false);
    let next = next(&failed, &Happening::Retry, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!((next.retry_count, next.progress, next.error), (0, 0, None));
}

/// What must hold after every step of any life. Says what was broken.
fn broken(machine: Machine, life: &[Happening]) -> Option<String> {
    let mut task = snapshot(Status::Pending, 0, false);
    task.progress = 0;
    let mut terminal_events = 0;
    for happening in life {
        let before = task;
        let Ok(next) = machine(&task, happening, Timestamp::UNIX_EPOCH) else { continue };
        let ends = next.status.is_terminal() && !before.status.is_terminal();
        terminal_events += i32::from(ends);
        if *happening == Happening::Retry {
            terminal_events = 0;
        }
        task = Snapshot {
            status: next.status,
            progress: next.progress,
            retry_count: next.retry_count,
            max_retries: task.max_retries,
            stopping: next.stop_within.is_some(),
        };
        let wrong = [
            (
                before.status.is_terminal()
                    && !next.status.is_terminal()
                    && *happening != Happening::Retry,
                "an ended task came back without a retry",
            ),
            (
                before.status.is_terminal()
                    && next.status.is_terminal()
                    && before.status != next.status,
                "an ended task ended otherwise",
            ),
            (before.status == Status::Completed, "a completed task changed"),
            (terminal_events > 1, "two ends without a retry between them"),
            (task.status.is_terminal() && terminal_events != 1, "an end without its event"),
            (next.retry_count > task.max_retries, "more retries than allowed"),
            (
                before.status == Status::InProgress
                    && next.status == Status::InProgress
                    && next.progress < before.progress,
                "progress went back within an attempt",
            ),
            (!(0..=100).contains(&next.progress), "progress out of range"),
            (next.status == Status::Failed && next.error.is_none(), "a failure without a reason"),
            (
                *happening == Happening::Interrupt && next.retry_count != before.retry_count,
                "an interruption was counted",
            ),
            (next.wait.is_some() && next.status != Status::Pending, "a wait outside the queue"),
        ];
        if let Some((_, text)) = wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            return Some(format!("{text}: {before:?} {happening:?} {next:?}"));
        }
    }
    None
}

/// Runs random lives through `machine` and returns the first thing that broke.
fn check(machine: Machine) -> Option<String> {
    // Takeovers in a row are rare by pure chance, and what they must respect is worth many tries.
    let lose = Happening::Lose { reason: "gone".into(), retry_in: Duration::from_secs(1) };
    let choice = prop_oneof![
        4 => Just(Happening::Claim),
        3 => Just(lose),
        6 => proptest::sample::select(happenings()),
    ];
    let mut runner =
        TestRunner::new(Config { cases: 2000, failure_persistence: None, ..Config::default() });
    let ran = runner.run(&vec(choice, 0..60), |life| match broken(machine, &life) {
        Some(text) => Err(TestCaseError::fail(text)),
        None => Ok(()),
    });
    ran.err().map(|error| error.to_string())
}

#[test]
fn random_lives_never_break_what_must_hold() {
    assert_eq!(check(next), None);
}

#[test]
fn a_machine_with_a_broken_guard_is_caught() {
    // A worker that completes a task which was cancelled under it.
    let careless: Machine = |task, happening, now| match (task.status, happening) {
        (Status::Cancelled, Happening::Complete) => {
            next(&Snapshot { status: Status::InProgress, ..*task }, happening, now)
        }
        _ => next(task, happening, now),
    };
    // A takeover that forgets to count, so that a poison task is tried for ever.
    let forgetful: Machine = |task, happening, now| match happening {
        Happening::Lose { .. } => {
            let mut next = next(task, happening, now)?;
            next.status = Status::Pending;
            next.retry_count = task.retry_count + 1;
            Ok(next)
        }
        _ => next(task, happening, now),
    };
    // Progress that is taken as told.
    let gullible: Machine = |task, happening, now| {
        let mut next = next(task, happening, now)?;
        if let Happening::Step { progress, .. } = happening {
            next.progress = *progress;
        }
        Ok(next)
    };
    for (name, machine) in
        [("careless", careless), ("forgetful", forgetful), ("gullible", gullible)]
    {
        assert!(check(machine).is_some(), "the {name} machine passed");
    }
}
