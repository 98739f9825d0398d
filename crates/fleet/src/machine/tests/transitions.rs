//! The specification's tables of transitions, row by row.

use serde_json::json;

use super::{Scene, W, ready, written};
use crate::api::{JobStatus, Reply, SessionStatus, WriteStatus};
use crate::code::ErrorCode;
use crate::machine::mission::Wish;
use crate::machine::worker::{Ask, Todo};
use crate::machine::{mission_may, worker_may};
use crate::model::{Checkpoint, CloseReason, EventKind, MissionStatus, Mode, WorkerStatus};
use crate::store::{Edit, Thing, Things};

// --- the mission ----------------------------------------------------------------------------------

#[test]
fn mission_novo_to_queued() {
    let scene = Scene::new();
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Queued, Some(Checkpoint::Atribuido))
    );
    assert!(mission.queued_at.is_some());
    assert_eq!(scene.events(), [EventKind::MissionQueued]);
    assert_eq!(scene.log()[0].details["queued_by"], "user");
}

#[test]
fn mission_queued_to_running() {
    let scene = Scene::scraping();
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Running, Some(Checkpoint::Extracao))
    );
    assert_eq!(mission.worker_id, Some(W.into()));
    assert!(mission.started_at.is_some());
    assert_eq!(mission.worker_job_id.as_deref(), Some("scrape_abc123"));
    assert_eq!(scene.worker().current_mission_id, Some(scene.mission.clone()));
}

#[test]
fn mission_running_to_running_when_the_writer_begins() {
    let scene = Scene::storing();
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Running, Some(Checkpoint::Armazenamento))
    );
    assert_eq!(
        mission.worker_data_url.as_deref(),
        Some("https://storage.meusite.com/scrape_abc123/scrape_abc123_results.json")
    );
    assert_eq!(mission.ads_count, Some(1500));
}

#[test]
fn mission_running_to_completed() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.write_answer(written(WriteStatus::Completed, 1500));
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Completed, Some(Checkpoint::Finalizado))
    );
    assert!(mission.finished_at.is_some() && mission.token.is_none());
}

#[test]
fn mission_running_to_failed() {
    let mut scene = Scene::scraping();
    for _ in 0..3 {
        scene.job(JobStatus::Failed, SessionStatus::Ready);
        if scene.mission().status == MissionStatus::Running {
            scene.answer(Reply::Started { job_id: "again".into() });
        }
    }
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Failed);
    assert_eq!(mission.error_code, Some(ErrorCode::Error203));
    assert_eq!(mission.retry_count, 2);
    assert!(mission.finished_at.is_some() && mission.error_message.is_some());
    let failed = scene.last(EventKind::MissionFailed);
    assert_eq!(failed.details["error_code"], "ERROR203");
    assert_eq!(failed.details["retry_count"], 2);
}

#[test]
fn mission_running_to_running_by_a_retry() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Failed, SessionStatus::Ready);
    let mission = scene.mission();
    assert_eq!((mission.status, mission.retry_count), (MissionStatus::Running, 1));
    let retry = scene.last(EventKind::RetryTriggered);
    assert_eq!(retry.details["attempt"], 1);
    assert_eq!(retry.details["phase"], "scrape");
    assert_eq!(retry.details["error_code"], "ERROR200");
}

#[test]
fn mission_queued_to_canceled() {
    let scene = Scene::new();
    assert_eq!(scene.wish(Wish::Cancel), 1);
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Canceled);
    assert!(mission.finished_at.is_some());
    let canceled = scene.last(EventKind::MissionCanceled);
    assert_eq!(canceled.details["canceled_by"], "user");
    assert_eq!(canceled.details["previous_checkpoint"], "atribuido");
}

#[test]
fn mission_running_to_canceled_and_the_job_is_told() {
    let mut scene = Scene::scraping();
    scene.wish(Wish::Cancel);
    assert_eq!(scene.mission().status, MissionStatus::Canceled);
    assert_eq!(scene.worker().status, WorkerStatus::Scraping);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CancelJob));
    scene.job(JobStatus::Cancelled, SessionStatus::Ready);
    let worker = scene.worker();
    assert_eq!((worker.status, worker.session_count), (WorkerStatus::Ready, 0));
    assert_eq!(worker.current_mission_id, None);
}

#[test]
fn mission_transitions_are_those_of_the_tables_and_no_other() {
    use MissionStatus::{Canceled, Completed, Failed, Queued, Running};
    let allowed = [
        (Queued, Running),
        (Queued, Canceled),
        (Running, Running),
        (Running, Completed),
        (Running, Failed),
        (Running, Canceled),
        (Running, Queued),
        (Failed, Queued),
    ];
    for from in MissionStatus::ALL {
        for to in MissionStatus::ALL {
            assert_eq!(mission_may(*from, *to), allowed.contains(&(*from, *to)), "{from} → {to}");
        }
    }
}

// --- the worker -----------------------------------------------------------------------------------

#[test]
fn worker_idle_to_initializing() {
    let mut scene = Scene::new();
    assert!(matches!(scene.settle(), Todo::Ask(Ask::OpenSession, _)));
    let worker = scene.worker();
    assert_eq!(worker.status, WorkerStatus::Initializing);
    assert!(scene.used().is_some());
    let started = scene.last(EventKind::SessionStarted);
    assert_eq!(started.details["worker_id"], W);
    assert!(started.details.contains_key("proxy_id") && started.details.contains_key("proxy_name"));
}

#[test]
fn worker_initializing_to_ready() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done);
    for status in [
        SessionStatus::Initializing,
        SessionStatus::Connecting,
        SessionStatus::Authenticating,
        SessionStatus::WarmingUp,
    ] {
        scene.pass(10);
        scene.session(status);
        assert_eq!(scene.worker().status, WorkerStatus::Initializing);
    }
    scene.session(SessionStatus::Ready);
    assert_eq!(scene.worker().status, WorkerStatus::Ready);
    assert_eq!(scene.last(EventKind::SessionReady).details["duration_ms"], 40_000);
}

#[test]
fn worker_initializing_to_error() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Stuck);
    let worker = scene.worker();
    assert_eq!(
        (worker.status, worker.close_reason),
        (WorkerStatus::Error, Some(CloseReason::Error))
    );
    assert_eq!(scene.used().unwrap().fail_count, 1);
}

#[test]
fn worker_ready_goes_scraping() {
    let scene = Scene::scraping();
    assert_eq!(scene.worker().status, WorkerStatus::Scraping);
    assert_eq!(scene.last(EventKind::MissionAssigned).details["worker_name"], "worker-1");
}

#[test]
fn worker_scraping_to_ready() {
    let scene = Scene::storing();
    let worker = scene.worker();
    assert_eq!((worker.status, worker.session_count), (WorkerStatus::Ready, 1));
    assert_eq!(worker.current_mission_id, None);
}

#[test]
fn worker_scraping_to_error() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Failed, SessionStatus::Disconnected);
    assert_eq!(scene.worker().status, WorkerStatus::Error);
}

#[test]
fn worker_ready_to_idle_at_the_session_limit() {
    let mut scene = Scene::storing();
    scene.settings.adjustable.session_limit = 1;
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    let worker = scene.worker();
    assert_eq!((worker.status, worker.session_count), (WorkerStatus::Idle, 0));
    assert!(scene.used().is_none());
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "session_limit");
}

#[test]
fn worker_error_to_idle() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Stuck).answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
    assert!(scene.used().is_none());
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "error");
}

#[test]
fn worker_any_to_idle_when_the_orchestrator_ends() {
    let mut scene = Scene::storing();
    scene.mode(Mode::Off);
    scene.answer(Reply::Done);
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "shutdown");
}

#[test]
fn worker_transitions_are_those_of_the_tables_and_no_other() {
    use WorkerStatus::{Error, Idle, Initializing, Ready, Scraping};
    let allowed = [
        (Idle, Initializing),
        (Initializing, Ready),
        (Initializing, Error),
        (Ready, Scraping),
        (Scraping, Ready),
        (Scraping, Error),
        (Ready, Error),
    ];
    for from in WorkerStatus::ALL {
        for to in WorkerStatus::ALL {
            let is_allowed = *to == Idle || allowed.contains(&(*from, *to));
            assert_eq!(worker_may(*from, *to), is_allowed, "{from} → {to}");
        }
    }
}

// --- the proxy ------------------------------------------------------------------------------------

#[test]
fn proxy_is_deactivated_at_the_third_failure() {
    let mut scene = Scene::new();
    ready(async {
        for name in ["proxy-br-2", "proxy-br-3"] {
            scene.memory.remove(&Thing::Proxy(name.into())).await.unwrap();
        }
    });
    for failures in 1..=3 {
        scene.answer(Reply::Done).session(SessionStatus::Stuck).answer(Reply::Done);
        assert_eq!(scene.proxy("proxy-br-1").fail_count, failures);
        scene.pass(600);
    }
    assert!(!scene.proxy("proxy-br-1").active);
}

#[test]
fn proxy_is_reactivated_by_hand_with_no_failures() {
    let scene = Scene::new();
    let thing = Thing::Proxy("proxy-br-1".into());
    let edit = |active| Edit { active: Some(active), ..Edit::default() };
    ready(scene.memory.edit(&thing, edit(false))).unwrap();
    scene.memory.tables().proxies.get_mut(&"proxy-br-1".into()).unwrap().fail_count = 3;
    ready(scene.memory.edit(&thing, edit(true))).unwrap();
    let proxy = scene.proxy("proxy-br-1");
    assert!(proxy.active && proxy.fail_count == 0);
}

#[test]
fn proxy_rotation_is_obligatory() {
    let mut scene = Scene::new();
    scene.settle();
    let first = scene.used().unwrap().id;
    scene.answer(Reply::Done).session(SessionStatus::Stuck).answer(Reply::Done);
    scene.settle();
    let second = scene.used().unwrap().id;
    assert_ne!(first, second);
    let rotated = scene.last(EventKind::ProxyRotated);
    assert_eq!(rotated.details["old_proxy"], json!(first));
    assert_eq!(rotated.details["new_proxy"], json!(second));
    assert_eq!(rotated.details["reason"], "ERROR102");
    assert_eq!(rotated.details["proxy_name"], json!(first));
}
