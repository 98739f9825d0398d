//! What the specification leaves open, as it was decided.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{Scene, W, away, ready, report, written};
use crate::api::{JobReport, JobStatus, Reply, SessionStatus, Trouble, WriteStatus};
use crate::code::Blame;
use crate::machine::mission::{Wish, refusal};
use crate::machine::worker::{Ask, Todo};
use crate::machine::{worker, writer};
use crate::model::{Checkpoint, EventKind, MissionStatus, Mode, Waiting, WorkerId, WorkerStatus};
use crate::settings::{Adjustable, ProxyFailures};
use crate::store::{Edit, Steps, Thing, Things};

#[test]
fn drain_finishes_what_runs_and_takes_nothing_new() {
    let mut scene = Scene::scraping();
    scene.mode(Mode::Drain);
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
    assert_eq!(scene.settle(), Todo::Rest(Waiting::Orchestrator));
}

#[test]
fn stop_cancels_the_job_requeues_the_mission_and_closes_the_session() {
    let mut scene = Scene::scraping();
    scene.mode(Mode::Stop);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CancelJob));
    scene.job(JobStatus::Cancelled, SessionStatus::Ready);
    assert_eq!(scene.mission().status, MissionStatus::Queued);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
}

#[test]
fn idempotency_key_is_mission_and_attempts_and_never_goes_back() {
    let mut scene = Scene::scraping();
    assert_eq!(scene.mission().idempotency_key(), "m1:1");
    scene.job(JobStatus::Failed, SessionStatus::Ready);
    assert_eq!(scene.mission().idempotency_key(), "m1:2");
    scene.mode(Mode::Stop);
    scene.settle();
    scene.answer(Reply::Done);
    assert_eq!(scene.mission().status, MissionStatus::Queued);
    assert_eq!(scene.mission().attempts, 2);
}

#[test]
fn blame_of_an_answer_refines_the_code() {
    let mut scene = Scene::scraping();
    let job = JobReport { blame: Some(Blame::Proxy), ..report(JobStatus::Failed) };
    scene.answer(Reply::Job { job, session: Some(SessionStatus::Ready) });
    assert_eq!(scene.used().unwrap().fail_count, 1);
}

#[test]
fn previous_proxy_is_taken_again_only_if_it_is_the_only_one() {
    let mut scene = Scene::new();
    ready(async {
        for name in ["proxy-br-2", "proxy-br-3"] {
            scene.memory.remove(&Thing::Proxy(name.into())).await.unwrap();
        }
    });
    scene.answer(Reply::Done).session(SessionStatus::Terminated).answer(Reply::Done);
    scene.pass(60);
    scene.settle();
    assert_eq!(scene.used().unwrap().id, "proxy-br-1".into());
}

#[test]
fn sessions_are_opened_only_while_the_queue_is_longer_than_those_that_wait() {
    let mut scene = Scene::new();
    scene.wish(Wish::Cancel);
    assert_eq!(scene.settle(), Todo::Rest(Waiting::Mission));
}

#[test]
fn session_events_before_a_mission_become_its_own() {
    let scene = Scene::scraping();
    let of_mission: Vec<EventKind> = scene
        .log()
        .iter()
        .filter(|entry| entry.mission_id.as_ref() == Some(&scene.mission))
        .map(|entry| entry.event)
        .collect();
    assert_eq!(
        of_mission,
        [
            EventKind::MissionQueued,
            EventKind::SessionStarted,
            EventKind::SessionReady,
            EventKind::MissionAssigned,
            EventKind::ScrapeStarted
        ]
    );
}

#[test]
fn event_fields_are_the_union_of_the_table_and_the_flows() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.pass(44);
    scene.write_answer(written(WriteStatus::Partial, 1500));
    let has = |event: EventKind, fields: &[&str]| {
        let entry = scene.last(event);
        for field in fields {
            assert!(
                entry.details.contains_key(*field),
                "{event} has no {field}: {:?}",
                entry.details
            );
        }
    };
    has(EventKind::MissionAssigned, &["worker_id", "worker_name", "proxy_name", "mission_id"]);
    has(EventKind::SessionStarted, &["worker_id", "proxy_id", "proxy_name"]);
    has(EventKind::SessionReady, &["worker_id", "duration_ms"]);
    has(EventKind::ScrapeStarted, &["worker_job_id", "mission_config", "mission_id", "worker_id"]);
    has(EventKind::ScrapeCompleted, &["worker_job_id", "ads_count", "duration_ms", "worker_id"]);
    has(EventKind::WriterStarted, &["writer_job_id", "data_url"]);
    has(
        EventKind::WriterCompleted,
        &["writer_job_id", "success_count", "failed_count", "duration_ms"],
    );
    has(
        EventKind::MissionCompleted,
        &["total_duration_ms", "ads_count", "success_count", "failed_count"],
    );
}

#[test]
fn the_example_of_10_2_comes_out_event_for_event() {
    let mut scene = Scene::new();
    scene.goes_scraping();
    scene.pass(883);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    scene.pass(1);
    scene.lease();
    scene.accepted();
    scene.pass(44);
    scene.write_answer(written(WriteStatus::Completed, 1500));
    let told: Vec<(String, EventKind)> = scene
        .log()
        .iter()
        .map(|entry| (entry.timestamp.strftime("%H:%M:%S").to_string(), entry.event))
        .collect();
    let expected = [
        ("10:00:01", EventKind::MissionQueued),
        ("10:00:05", EventKind::SessionStarted),
        ("10:00:45", EventKind::SessionReady),
        ("10:00:46", EventKind::MissionAssigned),
        ("10:00:47", EventKind::ScrapeStarted),
        ("10:15:30", EventKind::ScrapeCompleted),
        ("10:15:31", EventKind::WriterStarted),
        ("10:16:15", EventKind::WriterCompleted),
        ("10:16:15", EventKind::MissionCompleted),
    ];
    let expected: Vec<_> = expected.iter().map(|(at, event)| ((*at).to_owned(), *event)).collect();
    assert_eq!(told, expected);
    assert_eq!(scene.last(EventKind::SessionReady).details["duration_ms"], 40_000);
    assert_eq!(scene.last(EventKind::MissionCompleted).details["total_duration_ms"], 974_000);
}

#[test]
fn durations_are_from_each_ones_own_start() {
    let mut scene = Scene::storing();
    scene.pass(30);
    scene.accepted();
    scene.pass(44);
    scene.write_answer(written(WriteStatus::Completed, 1500));
    let took = |event, field: &str| scene.last(event).details[field].as_i64().unwrap();
    assert_eq!(took(EventKind::SessionReady, "duration_ms"), 40_000);
    assert_eq!(took(EventKind::ScrapeCompleted, "duration_ms"), 883_000);
    // Without the wait for a writer.
    assert_eq!(took(EventKind::WriterCompleted, "duration_ms"), 44_000);
    let mission = scene.mission();
    let total = mission.finished_at.unwrap().duration_since(mission.queued_at.unwrap());
    let told = took(EventKind::MissionCompleted, "total_duration_ms");
    assert!((told - total.as_millis() as i64).abs() <= 1, "{told} {total:?}");
}

#[test]
fn session_count_grows_with_what_is_done_and_ends_with_the_session() {
    let mut scene = Scene::scraping();
    assert_eq!(scene.worker().session_count, 0);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    assert_eq!(scene.worker().session_count, 1);
    scene.mode(Mode::Off);
    scene.answer(Reply::Done);
    scene.settle();
    assert_eq!((scene.worker().status, scene.worker().session_count), (WorkerStatus::Idle, 0));
}

#[test]
fn progress_is_told_on_change_and_at_most_once_a_minute() {
    let mut scene = Scene::scraping();
    let running = |count| Reply::Job {
        job: JobReport { ads_count: Some(count), ..report(JobStatus::Running) },
        session: Some(SessionStatus::Scraping),
    };
    for count in [10, 20, 20, 30, 40] {
        scene.answer(running(count));
        scene.pass(30);
    }
    let log = scene.log();
    let told: Vec<_> = log.iter().filter(|e| e.event == EventKind::ScrapeProgress).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0].details["progress_pct"], json!(null));
}

#[test]
fn empty_is_completed_without_a_writer() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Empty, SessionStatus::Ready);
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Completed, Some(Checkpoint::Finalizado))
    );
    assert_eq!((mission.ads_count, mission.worker_data_url), (Some(0), None));
    assert_eq!(scene.worker().session_count, 1);
    let events = scene.events();
    assert_eq!(events[events.len() - 2..], [EventKind::ScrapeEmpty, EventKind::MissionCompleted]);
}

#[test]
fn paused_is_a_failure_and_its_session_is_closed_before_another_job() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Paused, SessionStatus::Ready);
    assert_eq!(scene.last(EventKind::ScrapeFailed).details["error_code"], "ERROR200");
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
}

#[test]
fn timeouts_go_on_from_the_stored_start_after_a_crash() {
    let mut scene = Scene::scraping();
    scene.pass(99 * 60);
    scene.lease();
    assert!(matches!(scene.settle(), Todo::Ask(Ask::Job, _)));
    scene.pass(60);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CancelJob, _)));
}

#[test]
fn recovery_takes_each_session_status_as_decided() {
    let cases = [
        (SessionStatus::Initializing, WorkerStatus::Initializing, None),
        (SessionStatus::Connecting, WorkerStatus::Initializing, None),
        (SessionStatus::Authenticating, WorkerStatus::Initializing, None),
        (SessionStatus::WarmingUp, WorkerStatus::Initializing, None),
        (SessionStatus::Ready, WorkerStatus::Ready, None),
        (SessionStatus::Scraping, WorkerStatus::Error, None),
        (SessionStatus::Stuck, WorkerStatus::Error, Some("ERROR102")),
        (SessionStatus::Disconnected, WorkerStatus::Error, Some("ERROR103")),
        (SessionStatus::Terminated, WorkerStatus::Error, Some("ERROR100")),
        (SessionStatus::Other("napping".into()), WorkerStatus::Initializing, None),
    ];
    for (status, expected, code) in cases {
        let mut scene = Scene::new();
        scene.answer(Reply::Done);
        scene.lease();
        scene.session(status.clone());
        assert_eq!(scene.worker().status, expected, "{status:?}");
        if let Some(code) = code {
            assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], code);
        }
    }
}

#[test]
fn recovery_of_a_mission_in_extracao_follows_its_job() {
    for (status, checkpoint, mission_status) in [
        (JobStatus::Completed, Checkpoint::Armazenamento, MissionStatus::Running),
        (JobStatus::Running, Checkpoint::Extracao, MissionStatus::Running),
        (JobStatus::Failed, Checkpoint::Extracao, MissionStatus::Running),
    ] {
        let mut scene = Scene::scraping();
        scene.lease();
        scene.job(status.clone(), SessionStatus::Ready);
        assert_eq!(scene.asked.last(), Some(&Ask::Job), "asked, not started again");
        let mission = scene.mission();
        assert_eq!((mission.checkpoint, mission.status), (Some(checkpoint), mission_status));
    }
}

#[test]
fn job_id_unknown_puts_the_mission_back_and_closes_the_session() {
    let mut scene = Scene::scraping();
    scene.lease();
    scene.answer(Reply::Unknown);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
    assert_eq!(scene.mission().status, MissionStatus::Running);
    scene.answer(Reply::Done);
    assert_eq!(scene.mission().status, MissionStatus::Queued);
}

#[test]
fn a_scrape_that_is_refused_because_the_session_broke_does_not_fail_the_mission() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Ready);
    scene.session(SessionStatus::Disconnected);
    assert_eq!(scene.asked.last(), Some(&Ask::StartScrape));
    assert_eq!(scene.mission().status, MissionStatus::Running);
    assert_eq!(scene.mission().retry_count, 1);
    assert_eq!(scene.worker().status, WorkerStatus::Error);
}

#[test]
fn an_intent_without_an_answer_is_sent_again_under_the_same_key() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Ready);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    let key = scene.mission().idempotency_key();
    scene.lease();
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    assert_eq!(scene.mission().idempotency_key(), key);
}

#[test]
fn the_writer_is_the_oldest_active_one_and_none_is_a_named_wait() {
    let mut scene = Scene::storing();
    let edit = |active| Edit { active: Some(active), ..Edit::default() };
    ready(scene.memory.edit(&Thing::Writer("writer-1".into()), edit(false))).unwrap();
    assert_eq!(scene.write_settled(), writer::Todo::Rest(Waiting::ActiveWriter));
    assert_eq!(scene.mission().waiting, Some(Waiting::ActiveWriter));
    ready(scene.memory.edit(&Thing::Writer("writer-1".into()), edit(true))).unwrap();
    assert!(matches!(scene.write_settled(), writer::Todo::Ask(writer::Ask::Process, ..)));
    assert_eq!(scene.mission().writer_id, Some("writer-1".into()));
}

#[test]
fn writer_job_id_is_stored_before_the_call_and_404_sends_the_same_again() {
    let mut scene = Scene::storing();
    scene.write_settled();
    let id = scene.mission().writer_job_id;
    assert_eq!(id.as_deref(), Some("550e8400"));
    scene.accepted();
    scene.write_answer(Reply::Unknown);
    assert_eq!(scene.mission().writer_accepted_at, None);
    assert_eq!(scene.mission().writer_job_id, id);
    scene.accepted();
    assert_eq!(scene.mission().retry_count, 0);
}

#[test]
fn completed_with_failures_is_logged_as_partial_with_at_most_100_items() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.write_answer(written(WriteStatus::Completed, 1500));
    let completed = scene.last(EventKind::WriterCompleted);
    assert_eq!(completed.details["status"], "partial");
    assert_eq!(completed.details["failed_items"].as_array().unwrap().len(), 100);
    assert_eq!(scene.mission().status, MissionStatus::Completed);
}

#[test]
fn a_persons_retry_writes_again_or_scrapes_again() {
    for (from_scrape, keeps) in [(false, true), (true, false)] {
        let mut scene = Scene::storing();
        scene.write_answer(Reply::Trouble(Trouble::Refused { message: "no".into() }));
        assert_eq!(scene.wish(Wish::Retry { from_scrape }), 1);
        let mission = scene.mission();
        assert_eq!(mission.status, MissionStatus::Queued);
        assert_eq!(mission.worker_data_url.is_some(), keeps);
        assert_eq!((mission.error_code, mission.finished_at, mission.retry_count), (None, None, 0));
        assert_eq!(mission.writer_job_id, None);
    }
}

#[test]
fn cancel_while_scraping_that_is_never_confirmed_ends_with_the_session() {
    let mut scene = Scene::scraping();
    scene.wish(Wish::Cancel);
    scene.answer(Reply::Done);
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    scene.pass(60);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
    assert_eq!(scene.worker().status, WorkerStatus::Error);
    scene.answer(Reply::Done);
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
    assert_eq!(scene.mission().status, MissionStatus::Canceled);
}

#[test]
fn cancel_works_with_no_orchestrator_and_recovery_finishes_it() {
    let mut scene = Scene::scraping();
    scene.wish(Wish::Cancel);
    scene.lease();
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CancelJob));
    scene.answer(Reply::Unknown);
    assert_eq!(scene.worker().status, WorkerStatus::Ready);
}

#[test]
fn cancel_before_the_job_id_is_known_closes_the_session() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Ready);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    scene.wish(Wish::Cancel);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "canceled");
}

#[test]
fn proxy_is_released_only_when_the_end_of_the_session_is_confirmed_or_its_time_is_up() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Stuck);
    for _ in 0..5 {
        scene.answer(away());
        assert!(scene.used().is_some(), "the session may still use it");
        scene.pass(10);
    }
    scene.pass(10);
    scene.settle();
    assert!(scene.used().is_none());
    assert_eq!(scene.last(EventKind::SessionTerminated).details["confirmed"], false);
    // What was not confirmed is remembered, and asked for until it is.
    assert!(scene.worker().unclosed);
    scene.answer(away());
    assert!(scene.worker().unclosed);
    scene.answer(Reply::Done);
    assert!(!scene.worker().unclosed);
}

#[test]
fn deactivating_a_worker_drains_it_and_then_closes() {
    let mut scene = Scene::scraping();
    let edit = Edit { active: Some(false), ..Edit::default() };
    ready(scene.memory.edit(&Thing::Worker(W.into()), edit)).unwrap();
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    scene.answer(Reply::Done);
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "deactivated");
    assert_eq!(scene.settle(), Todo::Leave);
}

#[test]
fn storage_domain_keeps_its_scheme() {
    let url = worker::data_url("http://127.0.0.1:9000/w1/", "j");
    assert_eq!(url, "http://127.0.0.1:9000/w1/j/j_results.json");
}

#[test]
fn queueing_an_ended_mission_is_refused() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Empty, SessionStatus::Ready);
    assert_eq!(scene.wish(Wish::Queue), 0);
    assert!(refusal(&scene.mission(), Wish::Queue).unwrap().contains("copy"));
    assert_eq!(scene.wish(Wish::Cancel), 0);
    assert_eq!(scene.wish(Wish::Retry { from_scrape: true }), 0);
}

#[test]
fn signed_data_urls_are_cut_in_the_log() {
    let mut scene = Scene::storing();
    let url = "https://bucket/x.json?X-Amz-Signature=abc";
    let mission = scene.mission.clone();
    scene.memory.tables().missions.get_mut(&mission).unwrap().worker_data_url = Some(url.into());
    scene.accepted();
    assert_eq!(scene.last(EventKind::WriterStarted).details["data_url"], "https://bucket/x.json");
}

#[test]
fn http_429_is_a_wait_and_changes_nothing() {
    let mut scene = Scene::scraping();
    let before = scene.mission();
    let after = Some(Duration::from_secs(7));
    scene.answer(Reply::Trouble(Trouble::Busy { after }));
    assert_eq!(scene.worker().waiting, Some(Waiting::WorkerBusy));
    assert_eq!((scene.mission().status, scene.mission().retry_count), (before.status, 0));
}

#[test]
fn a_status_that_nobody_knows_waits_until_the_timeout() {
    let mut scene = Scene::scraping();
    for _ in 0..5 {
        scene.pass(1000);
        scene.job(JobStatus::Other("dreaming".into()), SessionStatus::Other("?".into()));
        assert_eq!(scene.mission().status, MissionStatus::Running);
    }
    scene.pass(1000);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CancelJob, _)));
}

#[test]
fn failures_in_a_row_are_forgotten_by_a_success_where_that_is_set() {
    for (failures, left) in [(ProxyFailures::Total, 2), (ProxyFailures::Consecutive, 0)] {
        let mut scene = Scene::scraping();
        scene.settings.adjustable =
            Adjustable { proxy_failures: failures, ..Adjustable::default() };
        let used = scene.used().unwrap().id;
        scene.memory.tables().proxies.get_mut(&used).unwrap().fail_count = 2;
        scene.job(JobStatus::Completed, SessionStatus::Ready);
        assert_eq!(scene.used().unwrap().fail_count, left);
    }
}

#[test]
fn a_step_of_one_who_was_replaced_writes_nothing() {
    let mut scene = Scene::scraping();
    let view = scene.view();
    let old = scene.token;
    scene.lease();
    assert_ne!(old, scene.token);
    let reply = Reply::Job {
        job: JobReport { ads_count: Some(1), ..report(JobStatus::Completed) },
        session: None,
    };
    let step = worker::after(&view, Ask::Job, &reply, &scene.settings, scene.now).unwrap();
    let before = (scene.mission(), scene.worker(), scene.log().len());
    assert_eq!(ready(scene.memory.apply(vec![step])).unwrap(), [false]);
    assert_eq!((scene.mission(), scene.worker(), scene.log().len()), before);
}

#[test]
fn a_step_whose_answer_was_lost_is_not_written_twice() {
    let mut scene = Scene::scraping();
    let reply = Reply::Job { job: report(JobStatus::Running), session: Some(SessionStatus::Stuck) };
    let step = worker::after(&scene.view(), Ask::Job, &reply, &scene.settings, scene.now).unwrap();
    assert_eq!(ready(scene.memory.apply(vec![step.clone()])).unwrap(), [true]);
    let (failures, entries) = (scene.used().unwrap().fail_count, scene.log().len());
    assert_eq!(ready(scene.memory.apply(vec![step])).unwrap(), [false]);
    assert_eq!((scene.used().unwrap().fail_count, scene.log().len()), (failures, entries));
    scene.settle();
}

#[test]
fn entries_of_a_mission_are_strictly_later_than_the_last() {
    let mut scene = Scene::scraping();
    // All at the same moment.
    scene.job(JobStatus::Failed, SessionStatus::Ready);
    scene.answer(Reply::Started { job_id: "b".into() });
    scene.job(JobStatus::Empty, SessionStatus::Ready);
    let mut times: Vec<Timestamp> = Vec::new();
    for entry in scene.log().iter().filter(|e| e.mission_id.is_some()) {
        times.push(entry.timestamp);
    }
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
}

#[test]
fn a_worker_id_is_text() {
    assert_eq!(WorkerId::from("W1").to_string(), "W1");
}
