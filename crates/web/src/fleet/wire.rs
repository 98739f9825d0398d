//! The fleet as it travels: the columns of its tables, without secrets and what is internal.

use jiff::Timestamp;
use lavra_fleet::{model, service, settings, store};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::words::{
    Checkpoint, CloseReason, EventKind, MediaType, MissionErrorCode, MissionStatus, Mode,
    ProxyFailures, Waiting, WorkerStatus,
};

/// What is to be scraped, and how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "date_start": "2025-01-01",
    "date_end": "2025-01-31",
    "media_type": "video",
    "languages": ["pt"],
    "status": "running",
    "checkpoint": "extracao",
    "worker_id": "wrk_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "worker_job_id": "scrape_abc123",
    "worker_data_url": null,
    "proxy_used": "proxy-br-1",
    "writer_job_id": null,
    "ads_count": null,
    "error_code": null,
    "error_message": null,
    "retry_count": 0,
    "created_at": "2026-11-15T20:30:00Z",
    "queued_at": "2026-11-15T20:31:00Z",
    "started_at": "2026-11-15T20:32:00Z",
    "finished_at": null,
    "attempts": 1,
    "phase_started_at": "2026-11-15T20:32:00Z",
    "writer_id": null,
    "writer_accepted_at": null,
    "writer_processed": null,
    "writer_moved_at": null,
    "next_attempt_at": null,
    "waiting": "job",
    "held_by": "0193a1b2-0000-7000-8000-000000000001",
}))]
pub(crate) struct Mission {
    id: String,
    #[schema(format = Date)]
    date_start: String,
    #[schema(format = Date)]
    date_end: String,
    media_type: MediaType,
    languages: Vec<String>,
    /// `queued` is in the bank while `queued_at` is null.
    status: MissionStatus,
    checkpoint: Option<Checkpoint>,
    worker_id: Option<String>,
    worker_job_id: Option<String>,
    worker_data_url: Option<String>,
    /// The name of the proxy.
    proxy_used: Option<String>,
    writer_job_id: Option<String>,
    ads_count: Option<i32>,
    error_code: Option<MissionErrorCode>,
    error_message: Option<String>,
    /// Retries of the current phase.
    retry_count: i32,
    created_at: Timestamp,
    queued_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    /// Scrape and writer jobs asked for so far; never goes back.
    attempts: i32,
    /// When the job that runs was asked for; timeouts count from here.
    phase_started_at: Option<Timestamp>,
    writer_id: Option<String>,
    writer_accepted_at: Option<Timestamp>,
    /// What the writer had done when it last moved, and when that was.
    writer_processed: Option<i64>,
    writer_moved_at: Option<Timestamp>,
    next_attempt_at: Option<Timestamp>,
    waiting: Option<Waiting>,
    /// The process that looks after it.
    held_by: Option<Uuid>,
}

impl From<model::Mission> for Mission {
    fn from(mission: model::Mission) -> Self {
        Self {
            id: mission.id.0,
            date_start: mission.date_start.to_string(),
            date_end: mission.date_end.to_string(),
            media_type: mission.media_type.into(),
            languages: mission.languages,
            status: mission.status.into(),
            checkpoint: mission.checkpoint.map(Into::into),
            worker_id: mission.worker_id.map(|id| id.0),
            worker_job_id: mission.worker_job_id,
            worker_data_url: mission.worker_data_url,
            proxy_used: mission.proxy_used,
            writer_job_id: mission.writer_job_id,
            ads_count: mission.ads_count,
            error_code: mission.error_code.map(Into::into),
            error_message: mission.error_message,
            retry_count: mission.retry_count,
            created_at: mission.created_at,
            queued_at: mission.queued_at,
            started_at: mission.started_at,
            finished_at: mission.finished_at,
            attempts: mission.attempts,
            phase_started_at: mission.phase_started_at,
            writer_id: mission.writer_id.map(|id| id.0),
            writer_accepted_at: mission.writer_accepted_at,
            writer_processed: mission.writer_processed,
            writer_moved_at: mission.writer_moved_at,
            next_attempt_at: mission.next_attempt_at,
            waiting: mission.waiting.map(Into::into),
            held_by: mission.held_by.map(|process| process.0),
        }
    }
}

/// One that scrapes. Its API key is never shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetWorker, example = json!({
    "id": "wrk_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "name": "worker-1",
    "url": "https://worker-1.example.com",
    "storage_domain": "storage.example.com",
    "status": "scraping",
    "session_count": 2,
    "current_mission_id": "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "active": true,
    "last_test_at": "2026-11-15T20:30:00Z",
    "last_test_ok": true,
    "created_at": "2026-11-15T20:00:00Z",
    "updated_at": "2026-11-15T20:32:00Z",
    "last_proxy_id": "prx_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "session_id": "ses_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "session_started_at": "2026-11-15T20:10:00Z",
    "session_accepted": true,
    "session_errors": 0,
    "error_code": null,
    "error_message": null,
    "next_attempt_at": null,
    "close_reason": null,
    "close_by": null,
    "unclosed": false,
    "stop_by": null,
    "unreachable_since": null,
    "waiting": "job",
    "held_by": "0193a1b2-0000-7000-8000-000000000001",
}))]
pub(crate) struct Worker {
    pub(super) id: String,
    name: String,
    url: String,
    /// Where its results are.
    storage_domain: Option<String>,
    status: WorkerStatus,
    /// Missions done in this session.
    session_count: i32,
    current_mission_id: Option<String>,
    active: bool,
    last_test_at: Option<Timestamp>,
    last_test_ok: Option<bool>,
    created_at: Timestamp,
    updated_at: Timestamp,
    last_proxy_id: Option<String>,
    session_id: Option<String>,
    session_started_at: Option<Timestamp>,
    /// Whether the worker has taken the request for the session.
    session_accepted: bool,
    /// Failures in a row, while no mission was assigned.
    session_errors: i32,
    /// What the session before ended with.
    error_code: Option<MissionErrorCode>,
    error_message: Option<String>,
    next_attempt_at: Option<Timestamp>,
    /// The session is to be closed, why, and by when at the latest.
    close_reason: Option<CloseReason>,
    close_by: Option<Timestamp>,
    /// A session whose end was never confirmed.
    unclosed: bool,
    /// By when a job that was told to stop must have.
    stop_by: Option<Timestamp>,
    unreachable_since: Option<Timestamp>,
    waiting: Option<Waiting>,
    /// The process that looks after it.
    held_by: Option<Uuid>,
}

impl From<model::Worker> for Worker {
    fn from(worker: model::Worker) -> Self {
        Self {
            id: worker.id.0,
            name: worker.name,
            url: worker.url,
            storage_domain: worker.storage_domain,
            status: worker.status.into(),
            session_count: worker.session_count,
            current_mission_id: worker.current_mission_id.map(|id| id.0),
            active: worker.active,
            last_test_at: worker.last_test_at,
            last_test_ok: worker.last_test_ok,
            created_at: worker.created_at,
            updated_at: worker.updated_at,
            last_proxy_id: worker.last_proxy_id.map(|id| id.0),
            session_id: worker.session_id.map(|id| id.0),
            session_started_at: worker.session_started_at,
            session_accepted: worker.session_accepted,
            session_errors: worker.session_errors,
            error_code: worker.error_code.map(Into::into),
            error_message: worker.error_message,
            next_attempt_at: worker.next_attempt_at,
            close_reason: worker.close_reason.map(Into::into),
            close_by: worker.close_by,
            unclosed: worker.unclosed,
            stop_by: worker.stop_by,
            unreachable_since: worker.unreachable_since,
            waiting: worker.waiting.map(Into::into),
            held_by: worker.held_by.map(|process| process.0),
        }
    }
}

/// What sessions go through. Its password is never shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetProxy, example = json!({
    "id": "prx_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "name": "proxy-br-1",
    "host": "10.0.0.7",
    "port": 3128,
    "username": "lavra",
    "active": true,
    "in_use_by_worker_id": null,
    "fail_count": 1,
    "last_used_at": "2026-11-15T20:32:00Z",
    "last_test_at": null,
    "last_test_ok": null,
    "created_at": "2026-11-15T20:00:00Z",
}))]
pub(crate) struct Proxy {
    pub(super) id: String,
    name: Option<String>,
    host: String,
    port: Option<i32>,
    username: Option<String>,
    active: bool,
    in_use_by_worker_id: Option<String>,
    /// Three deactivate it.
    fail_count: i32,
    last_used_at: Option<Timestamp>,
    last_test_at: Option<Timestamp>,
    last_test_ok: Option<bool>,
    created_at: Timestamp,
}

impl From<model::Proxy> for Proxy {
    fn from(proxy: model::Proxy) -> Self {
        Self {
            id: proxy.id.0,
            name: proxy.name,
            host: proxy.host,
            port: proxy.port,
            username: proxy.username,
            active: proxy.active,
            in_use_by_worker_id: proxy.in_use_by_worker_id.map(|id| id.0),
            fail_count: proxy.fail_count,
            last_used_at: proxy.last_used_at,
            last_test_at: proxy.last_test_at,
            last_test_ok: proxy.last_test_ok,
            created_at: proxy.created_at,
        }
    }
}

/// One that stores what was scraped. Its API key is never shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetWriter, example = json!({
    "id": "wrt_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "name": "writer-1",
    "url": "https://writer.example.com",
    "active": true,
    "last_test_at": "2026-11-15T20:30:00Z",
    "last_test_ok": true,
    "created_at": "2026-11-15T20:00:00Z",
    "updated_at": "2026-11-15T20:32:00Z",
}))]
pub(crate) struct Writer {
    pub(super) id: String,
    name: String,
    url: String,
    active: bool,
    last_test_at: Option<Timestamp>,
    last_test_ok: Option<bool>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<model::Writer> for Writer {
    fn from(writer: model::Writer) -> Self {
        Self {
            id: writer.id.0,
            name: writer.name,
            url: writer.url,
            active: writer.active,
            last_test_at: writer.last_test_at,
            last_test_ok: writer.last_test_ok,
            created_at: writer.created_at,
            updated_at: writer.updated_at,
        }
    }
}

/// What happened.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetLogEntry, example = json!({
    "id": "log_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "mission_id": "mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
    "event": "scrape_completed",
    "details": {"worker_job_id": "scrape_abc123", "ads_count": 1500},
    "timestamp": "2026-11-15T20:32:00Z",
    "session_id": "ses_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b",
}))]
pub(crate) struct LogEntry {
    pub(super) id: String,
    /// Null for what belongs to no mission.
    pub(super) mission_id: Option<String>,
    pub(super) event: EventKind,
    /// What the event has to say; its fields depend on the event.
    #[schema(value_type = Object)]
    pub(super) details: Map<String, Value>,
    pub(super) timestamp: Timestamp,
    pub(super) session_id: Option<String>,
}

impl From<model::LogEntry> for LogEntry {
    fn from(entry: model::LogEntry) -> Self {
        Self {
            id: entry.id.0,
            mission_id: entry.mission_id.map(|id| id.0),
            event: entry.event.into(),
            details: entry.details,
            timestamp: entry.timestamp,
            session_id: entry.session_id.map(|id| id.0),
        }
    }
}

/// Whether it answers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TestAnswer, example = json!({"ok": true, "said": "ready"}))]
pub(crate) struct Tested {
    ok: bool,
    said: String,
}

impl From<service::Tested> for Tested {
    fn from(tested: service::Tested) -> Self {
        Self { ok: tested.ok, said: tested.said }
    }
}

/// What the orchestrators are to do, and the run that said so.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetControl, example = json!({
    "mode": "run", "task_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
}))]
pub(crate) struct Control {
    mode: Mode,
    task_id: Option<Uuid>,
}

impl From<store::Control> for Control {
    fn from(control: store::Control) -> Self {
        Self { mode: control.mode.into(), task_id: control.task_id.map(|task| task.0) }
    }
}

/// How many missions are how far.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MissionCounts, example = json!({
    "bank": 12, "queued": 40, "extracao": 3, "armazenamento": 1, "completed": 900, "failed": 2,
    "canceled": 0,
}))]
pub(crate) struct Counts {
    bank: i64,
    queued: i64,
    extracao: i64,
    armazenamento: i64,
    completed: i64,
    failed: i64,
    canceled: i64,
}

impl From<store::Counts> for Counts {
    fn from(counts: store::Counts) -> Self {
        let store::Counts { bank, queued, extracao, armazenamento, completed, failed, canceled } =
            counts;
        Self { bank, queued, extracao, armazenamento, completed, failed, canceled }
    }
}

/// What can be changed while the fleet runs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = FleetSettings, example = json!({
    "session_limit": 5, "max_retries": 2, "proxy_failures": "total",
}))]
pub(crate) struct Settings {
    /// Missions per session, after which the proxy is changed.
    #[schema(minimum = 1, maximum = 1000)]
    session_limit: i32,
    /// Retries of a phase before a mission fails for good.
    #[schema(minimum = 0, maximum = 20)]
    max_retries: i32,
    proxy_failures: ProxyFailures,
}

impl From<settings::Adjustable> for Settings {
    fn from(settings: settings::Adjustable) -> Self {
        Self {
            session_limit: settings.session_limit,
            max_retries: settings.max_retries,
            proxy_failures: settings.proxy_failures.into(),
        }
    }
}
