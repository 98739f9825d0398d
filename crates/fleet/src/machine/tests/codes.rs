//! Error codes and who is to blame.

use jiff::SignedDuration;

use super::{Scene, away, ready, written};
use crate::api::{JobStatus, Reply, SessionStatus, Trouble, WriteReport, WriteStatus};
use crate::code::{Blame, ErrorCode, Phase};
use crate::machine::mission::Wish;
use crate::machine::worker::{Ask, Todo};
use crate::machine::writer;
use crate::model::{Checkpoint, EventKind, MissionStatus, Waiting, WorkerStatus};
use crate::store::{Thing, Things};

#[test]
fn error100_terminated_blames_nobody() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Terminated);
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR100");
    assert_eq!(scene.used().unwrap().fail_count, 0);
}

#[test]
fn error101_not_ready_in_180_seconds_blames_the_proxy() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done);
    scene.pass(179);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::SessionStatus, _)));
    scene.pass(2);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR101");
    assert_eq!(scene.used().unwrap().fail_count, 1);
}

#[test]
fn error102_stuck_while_scraping_takes_a_new_proxy_session_and_job() {
    let mut scene = Scene::scraping();
    let first = scene.used().unwrap().id;
    scene.job(JobStatus::Running, SessionStatus::Stuck);
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR102");
    assert_eq!(scene.last(EventKind::RetryTriggered).details["phase"], "session");
    assert_eq!(scene.mission().retry_count, 1);
    scene.answer(Reply::Done).answer(Reply::Done).session(SessionStatus::Ready);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    assert_ne!(scene.used().unwrap().id, first);
    let mission = scene.mission();
    assert_eq!((mission.attempts, mission.worker_job_id), (2, None));
}

#[test]
fn error103_disconnected() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Running, SessionStatus::Disconnected);
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR103");
    assert_eq!(scene.used().unwrap().fail_count, 1);
}

#[test]
fn error104_session_retries_of_a_mission_are_used_up() {
    let mut scene = Scene::scraping();
    for _ in 0..2 {
        scene.job(JobStatus::Running, SessionStatus::Stuck);
        scene.answer(Reply::Done).answer(Reply::Done).session(SessionStatus::Ready);
        scene.answer(Reply::Started { job_id: "again".into() });
    }
    scene.job(JobStatus::Running, SessionStatus::Stuck);
    assert_eq!(scene.mission().status, MissionStatus::Failed);
    assert_eq!(scene.mission().error_code, Some(ErrorCode::Error104));
}

#[test]
fn error104_without_a_mission_is_counted_on_the_worker_and_tried_later() {
    let mut scene = Scene::new();
    for _ in 0..3 {
        scene.answer(Reply::Done).session(SessionStatus::Stuck).answer(Reply::Done);
    }
    let worker = scene.worker();
    assert_eq!(worker.error_code, Some(ErrorCode::Error104));
    let failed = scene.last(EventKind::SessionFailed);
    assert_eq!(
        (failed.mission_id, failed.details["error_code"].as_str()),
        (None, Some("ERROR104"))
    );
    assert!(matches!(scene.settle(), Todo::Until(_, Waiting::Retry)));
    assert_eq!(scene.mission().status, MissionStatus::Queued);
    scene.pass(3600);
    assert!(matches!(scene.settle(), Todo::Open | Todo::Ask(Ask::OpenSession, _)));
}

#[test]
fn error200_a_failed_job_is_sent_again_on_the_session_that_stands() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Failed, SessionStatus::Ready);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    assert_eq!(scene.worker().status, WorkerStatus::Scraping);
    assert_eq!(scene.mission().attempts, 2);
    assert_eq!(scene.last(EventKind::ScrapeFailed).details["error_code"], "ERROR200");
}

#[test]
fn error201_cancelled_by_someone_else() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Cancelled, SessionStatus::Ready);
    assert_eq!(scene.last(EventKind::ScrapeFailed).details["error_code"], "ERROR201");
    assert_eq!(scene.mission().retry_count, 1);
}

#[test]
fn error202_a_job_of_100_minutes_is_cancelled_before_another_starts() {
    let mut scene = Scene::scraping();
    scene.pass(100 * 60);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CancelJob));
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    assert!(!scene.events().contains(&EventKind::ScrapeFailed), "it still runs");
    scene.job(JobStatus::Cancelled, SessionStatus::Ready);
    assert_eq!(scene.last(EventKind::ScrapeFailed).details["error_code"], "ERROR202");
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
}

#[test]
fn error203_is_covered_by_mission_running_to_failed() {
    assert_eq!(ErrorCode::Error200.when_exhausted(), ErrorCode::Error203);
    assert_eq!(ErrorCode::Error201.when_exhausted(), ErrorCode::Error203);
    assert_eq!(ErrorCode::Error202.when_exhausted(), ErrorCode::Error203);
}

#[test]
fn error300_a_failed_writer_job_is_sent_once_more_with_another_id() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.write_answer(written(WriteStatus::Failed, 10));
    let mission = scene.mission();
    assert_eq!((mission.retry_count, mission.writer_job_id), (1, None));
    assert_eq!(scene.last(EventKind::RetryTriggered).details["phase"], "writer");
    assert_eq!(scene.last(EventKind::WriterFailed).details["error_code"], "ERROR300");
}

#[test]
fn error301_and_error302_before_it_accepts_are_a_wait_that_spends_nothing() {
    for code in [ErrorCode::Error301, ErrorCode::Error302] {
        let mut scene = Scene::storing();
        let trouble = Trouble::Away { code, message: "no".into() };
        // An hour of it.
        for _ in 0..30 {
            scene.write_answer(Reply::Trouble(trouble.clone()));
            assert!(matches!(scene.write_settled(), writer::Todo::Until(_, Waiting::Writer)));
            scene.pass(300);
        }
        let mission = scene.mission();
        assert_eq!((mission.status, mission.retry_count), (MissionStatus::Running, 0));
        assert_eq!(mission.error_code, Some(code));
        let told = scene.events().iter().filter(|e| **e == EventKind::WriterFailed).count();
        assert_eq!(told, 1, "once, not thirty times");
        assert_eq!(scene.write_answer(Reply::Unknown), writer::Ask::Status);
        scene.accepted();
        assert_eq!(scene.mission().error_code, None);
    }
}

#[test]
fn error300_a_writer_without_an_address_for_jobs_is_waited_for() {
    let mut scene = Scene::storing();
    let begun = scene.now;
    let mut sent = 0;
    while scene.now < begun + SignedDuration::from_hours(1) {
        match scene.write_settled() {
            writer::Todo::Until(_, Waiting::Writer) => scene.pass(10),
            _ if scene.write_answer(Reply::Unknown) == writer::Ask::Process => {
                sent += 1;
                let next = scene.write_settled();
                assert!(matches!(next, writer::Todo::Until(_, Waiting::Writer)), "{next:?}");
            }
            _ => {}
        }
    }
    assert!((5..30).contains(&sent), "{sent} times in an hour");
    let mission = scene.mission();
    assert_eq!((mission.status, mission.retry_count), (MissionStatus::Running, 0));
    assert_eq!(mission.error_code, Some(ErrorCode::Error300));
    let told = scene.events().iter().filter(|e| **e == EventKind::WriterFailed).count();
    assert_eq!(told, 1, "once, not {sent} times");
    scene.pass(300);
    while scene.write_answer(Reply::Unknown) == writer::Ask::Process {
        scene.pass(300);
    }
    scene.accepted();
    assert_eq!(scene.mission().error_code, None);
}

#[test]
fn a_job_whose_acceptance_was_not_heard_is_asked_for_before_it_is_sent_again() {
    let mut scene = Scene::storing();
    assert_eq!(scene.write_answer(away()), writer::Ask::Process);
    scene.pass(300);
    let heard = scene.write_answer(written(WriteStatus::Completed, 1500));
    assert_eq!(heard, writer::Ask::Status);
    assert_eq!(scene.mission().error_code, None);
    assert_eq!(scene.write_answer(written(WriteStatus::Completed, 1500)), writer::Ask::Status);
    assert_eq!(scene.mission().status, MissionStatus::Completed);
    let begun = scene.events().iter().filter(|e| **e == EventKind::WriterStarted).count();
    assert_eq!(begun, 1);
}

#[test]
fn error302_a_writer_that_does_not_move_for_ten_minutes() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.pass(30);
    scene.write_answer(written(WriteStatus::Processing, 10));
    scene.pass(599);
    scene.write_answer(written(WriteStatus::Processing, 10));
    assert_eq!(scene.mission().retry_count, 0);
    scene.pass(1);
    scene.write_settled();
    assert_eq!(scene.last(EventKind::WriterFailed).details["error_code"], "ERROR302");
    assert_eq!(scene.mission().retry_count, 1);
}

#[test]
fn a_writer_that_is_away_for_an_hour_is_not_silent() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.write_answer(written(WriteStatus::Processing, 10));
    for _ in 0..12 {
        scene.write_answer(Reply::Trouble(Trouble::Away {
            code: ErrorCode::Error301,
            message: "connection refused".into(),
        }));
        scene.pass(300);
    }
    scene.write_answer(written(WriteStatus::Processing, 10));
    scene.pass(599);
    scene.write_answer(written(WriteStatus::Completed, 1500));
    assert_eq!(scene.mission().status, MissionStatus::Completed);
    assert_eq!(scene.mission().retry_count, 0);
}

#[test]
fn error303_fails_at_once() {
    let mut scene = Scene::storing();
    scene.write_answer(Reply::Trouble(Trouble::Refused { message: "422: no column".into() }));
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Failed);
    assert_eq!(mission.error_code, Some(ErrorCode::Error303));
    assert_eq!(mission.error_message.as_deref(), Some("422: no column"));
}

#[test]
fn error304_after_the_one_retry() {
    let mut scene = Scene::storing();
    for _ in 0..2 {
        scene.accepted();
        scene.write_answer(written(WriteStatus::Failed, 10));
    }
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Failed);
    assert_eq!(mission.error_code, Some(ErrorCode::Error304));
}

#[test]
fn error400_and_error401_fail_and_a_person_retries_from_the_write() {
    for code in [ErrorCode::Error400, ErrorCode::Error401] {
        let mut scene = Scene::storing();
        scene.accepted();
        let Reply::Write(failed) = written(WriteStatus::Failed, 0) else { unreachable!() };
        scene.write_answer(Reply::Write(WriteReport { error_code: Some(code), ..failed }));
        assert_eq!(scene.mission().status, MissionStatus::Failed);
        assert_eq!(scene.mission().error_code, Some(code));
        assert_eq!(scene.wish(Wish::Retry { from_scrape: false }), 1);
        scene.lease();
        let mission = scene.mission();
        assert_eq!(mission.status, MissionStatus::Running);
        assert_eq!(mission.checkpoint, Some(Checkpoint::Armazenamento));
    }
}

#[test]
fn error500_a_request_that_is_refused_fails_the_mission() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Ready);
    scene.answer(Reply::Trouble(Trouble::Refused { message: "422: languages".into() }));
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Failed);
    assert_eq!(mission.error_code, Some(ErrorCode::Error500));
    scene.answer(Reply::Done);
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
}

#[test]
fn error501_is_a_named_wait_logged_once_without_mission() {
    let mut scene = Scene::new();
    ready(async {
        for name in ["proxy-br-1", "proxy-br-2", "proxy-br-3"] {
            scene.memory.remove(&Thing::Proxy(name.into())).await.unwrap();
        }
    });
    for _ in 0..5 {
        assert_eq!(scene.settle(), Todo::Open);
        scene.pass(5);
    }
    assert_eq!(scene.worker().waiting, Some(Waiting::Proxy));
    let log = scene.log();
    let told: Vec<_> = log.iter().filter(|e| e.event == EventKind::SessionFailed).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].details["error_code"], "ERROR501");
    assert_eq!(told[0].mission_id, None);
}

#[test]
fn error502_a_worker_that_cannot_be_reached_blames_no_proxy() {
    let mut scene = Scene::new();
    scene.answer(away());
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR502");
    assert_eq!(scene.worker().status, WorkerStatus::Error);
    assert_eq!(scene.used().unwrap().fail_count, 0);
    assert!(scene.worker().next_attempt_at.is_some());
}

#[test]
fn error502_its_mission_is_back_in_the_queue_after_five_minutes() {
    let mut scene = Scene::scraping();
    let queued_at = scene.mission().queued_at;
    scene.answer(away());
    assert_eq!(scene.worker().status, WorkerStatus::Scraping, "it may come back");
    assert_eq!(scene.mission().waiting, Some(Waiting::Worker));
    scene.pass(299);
    scene.answer(away());
    assert_eq!(scene.mission().status, MissionStatus::Running);
    scene.pass(1);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
    assert_eq!(scene.worker().status, WorkerStatus::Error);
    assert_eq!(scene.mission().status, MissionStatus::Running, "its job may still run there");
    scene.pass(60);
    scene.settle();
    let mission = scene.mission();
    assert_eq!((mission.status, mission.queued_at), (MissionStatus::Queued, queued_at));
    assert_eq!(mission.checkpoint, Some(Checkpoint::Atribuido));
    assert_eq!((mission.worker_id, mission.worker_job_id, mission.proxy_used), (None, None, None));
    assert_eq!(mission.started_at, None);
    assert_eq!(scene.last(EventKind::MissionQueued).details["queued_by"], "system");
}

#[test]
fn error502_a_mission_that_waits_for_a_new_session_goes_back_to_the_queue() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Running, SessionStatus::Stuck);
    scene.answer(Reply::Done);
    scene.answer(away());
    assert_eq!(scene.asked.last(), Some(&Ask::OpenSession));
    assert_eq!(scene.mission().status, MissionStatus::Queued);
    assert_eq!(scene.worker().status, WorkerStatus::Error);
    assert_eq!(scene.worker().current_mission_id, None);
}

#[test]
fn error502_a_worker_that_comes_back_in_time_is_followed_on() {
    let mut scene = Scene::scraping();
    scene.answer(away());
    scene.pass(200);
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    assert_eq!(scene.worker().unreachable_since, None);
    scene.pass(200);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    assert_eq!(scene.mission().checkpoint, Some(Checkpoint::Armazenamento));
}

#[test]
fn retry_policy_is_the_specifications() {
    let retried = ["100", "101", "102", "103", "200", "201", "202", "300", "301", "302"];
    for code in ErrorCode::ALL {
        let is_retried = retried.iter().any(|number| code.as_str().ends_with(number));
        assert_eq!(code.is_retried(), is_retried, "{code}");
        assert!(!code.says().is_empty());
    }
    assert_eq!(ErrorCode::Error101.phase(), Phase::Session);
    assert_eq!(ErrorCode::Error302.phase(), Phase::Writer);
    for code in [ErrorCode::Error100, ErrorCode::Error101, ErrorCode::Error102, ErrorCode::Error103]
    {
        assert_eq!(code.blame(), Blame::Proxy);
    }
}
