//! A mission in the writer's hands: from its data to its end.

use std::time::Duration;

use jiff::Timestamp;
use lavra_tasks::model::Token;
use serde_json::{Value, json};

use super::{Entry, Guard, Seen, Step, later, milliseconds, next_entry, without_query};
use crate::api::{Reply, Trouble, WriteReport, WriteStatus};
use crate::code::{ErrorCode, Phase};
use crate::model::{Checkpoint, EventKind, Mission, MissionStatus, Waiting, Writer, WriterId};
use crate::settings::Settings;

/// Retries of a writer job.
const RETRIES: i32 = 1;
/// Failed items that go into the log.
const FAILED_ITEMS: usize = 100;

/// What is to be done for a mission that is being stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Todo {
    /// It is not, or not any more.
    Leave,
    Until(Timestamp, Waiting),
    Rest(Waiting),
    Ask(Ask, WriterId, Duration),
    Write(Box<Step>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    Process,
    Status,
}

/// What is to be done next; `writers` from the oldest on, `job_id` for a job that has none.
pub fn todo(
    mission: &Mission,
    writers: &[Writer],
    job_id: &str,
    settings: &Settings,
    now: Timestamp,
) -> Todo {
    let is_storing = mission.status == MissionStatus::Running
        && mission.checkpoint == Some(Checkpoint::Armazenamento);
    let Some(token) = mission.token.filter(|_| is_storing) else { return Todo::Leave };
    if mission.worker_data_url.is_none() {
        let message = "the worker has no storage domain, so nobody knows where the data is";
        let draft = Draft::new(mission, token, now);
        return write(draft.failed(ErrorCode::Error400, message));
    }
    if let Some(time) = mission.next_attempt_at.filter(|time| *time > now) {
        return Todo::Until(time, mission.waiting.unwrap_or(Waiting::Retry));
    }
    let is_accepted = mission.writer_accepted_at.is_some();
    let is_usable = |writer: &&Writer| {
        Some(&writer.id) == mission.writer_id.as_ref() && (writer.active || is_accepted)
    };
    let Some(writer) = writers.iter().find(is_usable) else {
        return match writers.iter().find(|writer| writer.active) {
            Some(writer) => write(Draft::new(mission, token, now).choose(&writer.id, job_id)),
            None => Draft::new(mission, token, now).wait(Waiting::ActiveWriter),
        };
    };
    if mission.writer_job_id.is_none() {
        return write(Draft::new(mission, token, now).choose(&writer.id, job_id));
    }
    if !is_accepted {
        // What it may have taken although its answer was lost is not sent twice.
        let was_away = mission.error_code.is_some() && mission.next_attempt_at.is_some();
        let ask = if was_away { Ask::Status } else { Ask::Process };
        return Todo::Ask(ask, writer.id.clone(), Duration::ZERO);
    }
    // One that cannot be reached is away, not silent: its job may go on.
    let is_there = mission.waiting == Some(Waiting::WriterJob);
    let moved = mission.writer_moved_at.or(mission.writer_accepted_at).unwrap_or(now);
    if is_there && now >= later(moved, settings.timing.writer_silence) {
        let message = format!("nothing was stored for {:?}", settings.timing.writer_silence);
        let draft = Draft::new(mission, token, now);
        return write(draft.failed(ErrorCode::Error302, &message));
    }
    Todo::Ask(Ask::Status, writer.id.clone(), settings.timing.polling_job)
}

fn write(step: Step) -> Todo {
    Todo::Write(Box::new(step))
}

/// What an answer means; `None` where nothing changes.
pub fn after(
    mission: &Mission,
    ask: Ask,
    reply: &Reply,
    settings: &Settings,
    now: Timestamp,
) -> Option<Step> {
    let draft = Draft::new(mission, mission.token?, now);
    match (ask, reply) {
        (_, Reply::Trouble(trouble)) => draft.trouble(ask, trouble, settings),
        (Ask::Process, Reply::Accepted { job_id }) => Some(draft.accepted(job_id.as_deref())),
        (Ask::Status, Reply::Write(_)) if mission.writer_accepted_at.is_none() => {
            Some(draft.accepted(None))
        }
        (Ask::Status, Reply::Write(report)) => draft.job_is(report, settings),
        // It does not know the job: the same is sent again.
        (Ask::Status, Reply::Unknown) => Some(draft.send_again()),
        (Ask::Process, Reply::Unknown) => {
            let message = "404: it has no POST /process".to_owned();
            draft.trouble(ask, &Trouble::Away { code: ErrorCode::Error300, message }, settings)
        }
        // Answers to other questions.
        (
            Ask::Process,
            Reply::Done
            | Reply::Session(_)
            | Reply::Started { .. }
            | Reply::Job { .. }
            | Reply::Write(_),
        )
        | (
            Ask::Status,
            Reply::Done
            | Reply::Session(_)
            | Reply::Started { .. }
            | Reply::Job { .. }
            | Reply::Accepted { .. },
        ) => None,
    }
}

struct Draft {
    mission: Mission,
    token: Token,
    logs: Vec<Entry>,
    seen: Seen,
    now: Timestamp,
}

impl Draft {
    fn new(mission: &Mission, token: Token, now: Timestamp) -> Self {
        let seen = Seen { worker: None, mission: mission.logged_at };
        Self { mission: mission.clone(), token, logs: Vec::new(), seen, now }
    }

    fn done(self) -> Step {
        Step {
            mission: Some((Guard::Held(self.token), self.mission)),
            logs: self.logs,
            seen: self.seen,
            ..Step::default()
        }
    }

    fn log(&mut self, event: EventKind, details: Value) {
        let Value::Object(details) = details else { return };
        let at = next_entry(self.mission.logged_at, self.now);
        self.mission.logged_at = Some(at);
        let mission_id = Some(self.mission.id.clone());
        self.logs.push(Entry { mission_id, session_id: None, event, details, at });
    }

    fn wait(mut self, waiting: Waiting) -> Todo {
        if self.mission.waiting == Some(waiting) {
            return Todo::Rest(waiting);
        }
        self.mission.waiting = Some(waiting);
        write(self.done())
    }

    /// Who writes it, under which id: known before anyone is asked.
    fn choose(mut self, writer: &WriterId, job_id: &str) -> Step {
        self.mission.writer_id = Some(writer.clone());
        if self.mission.writer_job_id.is_none() {
            self.mission.writer_job_id = Some(job_id.to_owned());
            self.mission.attempts += 1;
            self.mission.phase_started_at = Some(self.now);
        }
        self.mission.waiting = Some(Waiting::Writer);
        self.done()
    }

    fn accepted(mut self, job_id: Option<&str>) -> Step {
        if let Some(id) = job_id {
            self.mission.writer_job_id = Some(id.to_owned());
        }
        self.mission.writer_accepted_at = Some(self.now);
        self.mission.writer_moved_at = Some(self.now);
        self.mission.writer_processed = None;
        self.mission.next_attempt_at = None;
        self.mission.error_code = None;
        self.mission.error_message = None;
        self.mission.waiting = Some(Waiting::WriterJob);
        let url = self.mission.worker_data_url.as_deref().map(without_query).map(str::to_owned);
        self.log(
            EventKind::WriterStarted,
            json!({
                "writer_job_id": self.mission.writer_job_id, "data_url": url,
                "writer_id": self.mission.writer_id,
            }),
        );
        self.done()
    }

    /// What was wrong stays until it is accepted: it is told once, however often it is sent.
    fn send_again(mut self) -> Step {
        self.mission.writer_accepted_at = None;
        self.mission.next_attempt_at = None;
        self.mission.waiting = Some(Waiting::Writer);
        self.done()
    }

    fn trouble(mut self, ask: Ask, trouble: &Trouble, settings: &Settings) -> Option<Step> {
        match trouble {
            Trouble::Busy { after } => {
                let wait = after.unwrap_or(settings.timing.backoff.0);
                self.mission.next_attempt_at = Some(later(self.now, wait));
                self.mission.waiting = Some(Waiting::WriterBusy);
                Some(self.done())
            }
            Trouble::Refused { message } => match ask {
                Ask::Process => Some(self.failed(ErrorCode::Error303, message)),
                Ask::Status if self.mission.writer_accepted_at.is_none() => Some(self.send_again()),
                Ask::Status => None,
            },
            Trouble::Away { message, code } => {
                // Before it accepts, nothing is spent; afterwards the job may go on without us.
                let first = self.mission.waiting != Some(Waiting::Writer)
                    || self.mission.error_code.is_none();
                let since = match ask {
                    Ask::Process => self.mission.phase_started_at,
                    Ask::Status => self.mission.writer_moved_at,
                };
                let waited = milliseconds(since, self.now) / 1000;
                // Twice the time that has passed is a backoff that needs no counter.
                let (least, most) = settings.timing.backoff;
                let wait = Duration::from_secs(waited.unsigned_abs()).clamp(least, most);
                self.mission.error_code = Some(*code);
                self.mission.error_message = Some(message.clone());
                self.mission.waiting = Some(Waiting::Writer);
                self.mission.next_attempt_at = Some(later(self.now, wait));
                if first {
                    let job_id = self.mission.writer_job_id.clone();
                    self.log(
                        EventKind::WriterFailed,
                        json!({
                            "writer_job_id": job_id, "error": message, "error_code": code,
                            "waits": true,
                        }),
                    );
                }
                Some(self.done())
            }
        }
    }

    fn job_is(mut self, report: &WriteReport, settings: &Settings) -> Option<Step> {
        match &report.status {
            WriteStatus::Completed | WriteStatus::Partial => Some(self.completed(report)),
            WriteStatus::Failed => {
                let code = report.error_code.unwrap_or(ErrorCode::Error300);
                let message =
                    report.message.clone().unwrap_or_else(|| "the writer job failed".into());
                Some(self.failed(code, &message))
            }
            WriteStatus::Processing | WriteStatus::Other(_) => {
                let has_moved = report.processed != self.mission.writer_processed;
                let was_away = self.mission.waiting != Some(Waiting::WriterJob);
                if !has_moved && !was_away {
                    return None;
                }
                self.mission.waiting = Some(Waiting::WriterJob);
                self.mission.error_code = None;
                self.mission.error_message = None;
                self.mission.writer_moved_at = Some(self.now);
                if has_moved {
                    self.mission.writer_processed = report.processed;
                    self.tell_progress(report, settings);
                }
                Some(self.done())
            }
        }
    }

    fn tell_progress(&mut self, report: &WriteReport, settings: &Settings) {
        let every = settings.timing.progress_every;
        if self.mission.told_at.is_some_and(|told| self.now < later(told, every)) {
            return;
        }
        self.mission.told_at = Some(self.now);
        let job_id = self.mission.writer_job_id.clone();
        self.log(
            EventKind::WriterProgress,
            json!({
                "writer_job_id": job_id, "processed": report.processed, "total": report.total,
            }),
        );
    }

    fn completed(mut self, report: &WriteReport) -> Step {
        let duration = milliseconds(self.mission.writer_accepted_at, self.now);
        let mut details = json!({
            "writer_job_id": self.mission.writer_job_id, "success_count": report.success_count,
            "failed_count": report.failed_count, "duration_ms": duration,
        });
        if report.failed_count.unwrap_or(0) > 0 || report.status == WriteStatus::Partial {
            details["status"] = json!("partial");
            let items: Vec<&Value> = report.failed_items.iter().take(FAILED_ITEMS).collect();
            details["failed_items"] = json!(items);
        }
        self.log(EventKind::WriterCompleted, details);
        let total = milliseconds(self.mission.queued_at, self.now);
        super::mission::end(&mut self.mission, MissionStatus::Completed, self.now);
        self.mission.checkpoint = Some(Checkpoint::Finalizado);
        self.mission.error_code = None;
        self.mission.error_message = None;
        let ads = self.mission.ads_count;
        self.log(
            EventKind::MissionCompleted,
            json!({
                "total_duration_ms": total, "ads_count": ads,
                "success_count": report.success_count, "failed_count": report.failed_count,
            }),
        );
        self.done()
    }

    /// A job that failed is sent once more, under another id; after that the mission fails.
    fn failed(mut self, code: ErrorCode, message: &str) -> Step {
        let job_id = self.mission.writer_job_id.take();
        self.log(
            EventKind::WriterFailed,
            json!({ "writer_job_id": job_id, "error": message, "error_code": code }),
        );
        self.mission.error_code = Some(code);
        self.mission.error_message = Some(message.to_owned());
        if code.is_retried() && self.mission.retry_count < RETRIES {
            self.mission.retry_count += 1;
            self.mission.next_attempt_at = None;
            self.mission.writer_accepted_at = None;
            self.mission.writer_processed = None;
            self.mission.writer_moved_at = None;
            self.mission.told_at = None;
            self.mission.waiting = Some(Waiting::Writer);
            let attempt = self.mission.retry_count;
            self.log(
                EventKind::RetryTriggered,
                json!({ "attempt": attempt, "error_code": code, "phase": Phase::Writer }),
            );
            return self.done();
        }
        let last = if code.is_retried() { ErrorCode::Error304 } else { code };
        self.mission.error_code = Some(last);
        self.mission.writer_job_id = job_id;
        super::mission::end(&mut self.mission, MissionStatus::Failed, self.now);
        let retries = self.mission.retry_count;
        self.log(
            EventKind::MissionFailed,
            json!({
                "error_code": last, "error_message": message, "retry_count": retries,
                "cause": code, "writer_id": self.mission.writer_id,
            }),
        );
        self.done()
    }
}

/// The body of `POST /process`.
pub fn process_body(mission: &Mission) -> Value {
    json!({
        "job_id": mission.writer_job_id,
        "config": {
            "table": "ads", "schema": "public", "operation": "upsert", "conflict_key": "id",
        },
        "source": { "type": "url", "url": mission.worker_data_url, "json_path": "ads" },
    })
}
