//! A worker's session: from its opening to its end.

use serde_json::json;

use super::super::{Guard, Step, later, milliseconds};
use super::{Draft, View};
use crate::api::SessionStatus;
use crate::code::{Blame, ErrorCode};
use crate::model::{CloseReason, EventKind, Mission, Waiting, WorkerStatus};
use crate::settings::Settings;

impl Draft {
    pub(super) fn session_is(
        mut self,
        status: &SessionStatus,
        view: &View,
        settings: &Settings,
    ) -> Option<Step> {
        let was_away = view.worker.unreachable_since.is_some();
        let is_initializing = self.worker.status == WorkerStatus::Initializing;
        match status {
            SessionStatus::Ready if is_initializing => Some(self.session_ready()),
            SessionStatus::Ready => was_away.then(|| self.done()),
            SessionStatus::Stuck => {
                let message = "the worker says stuck";
                Some(self.session_failed(ErrorCode::Error102, None, message, settings))
            }
            SessionStatus::Disconnected => {
                let message = "the worker says disconnected";
                Some(self.session_failed(ErrorCode::Error103, None, message, settings))
            }
            SessionStatus::Terminated => {
                let (code, blame) = (ErrorCode::Error100, Some(Blame::Nobody));
                let message = "the worker says terminated";
                Some(self.session_failed(code, blame, message, settings))
            }
            // A job of someone else's, or of an earlier life: not ours to follow.
            SessionStatus::Scraping => Some(self.close(CloseReason::Error, settings)),
            SessionStatus::Initializing
            | SessionStatus::Connecting
            | SessionStatus::Authenticating
            | SessionStatus::WarmingUp
            | SessionStatus::Other(_) => {
                // One that was ready and is not has begun anew by itself.
                let is_new = is_initializing && self.waits_for(Waiting::Session);
                (is_new || is_initializing && was_away).then(|| self.done())
            }
        }
    }

    pub(super) fn session_ready(mut self) -> Step {
        let duration = milliseconds(self.worker.session_started_at, self.now);
        let id = self.worker.id.clone();
        self.log(
            EventKind::SessionReady,
            json!({ "worker_id": id, "duration_ms": duration, "proxy_name": self.proxy_name() }),
        );
        self.worker.status = WorkerStatus::Ready;
        self.worker.session_errors = 0;
        self.worker.error_code = None;
        self.worker.error_message = None;
        self.worker.waiting = Some(Waiting::Mission);
        self.done()
    }

    /// The session failed: it is closed, and its proxy blamed where the code or the answer says so.
    pub(super) fn session_failed(
        mut self,
        code: ErrorCode,
        blame: Option<Blame>,
        message: &str,
        settings: &Settings,
    ) -> Step {
        let blame = blame.unwrap_or_else(|| code.blame());
        self.log(
            EventKind::SessionFailed,
            json!({
                "worker_id": self.worker.id, "error_code": code, "error_message": message,
                "blame": blame, "proxy_name": self.proxy_name(),
            }),
        );
        self.blame(blame, settings);
        self.worker.error_code = Some(code);
        self.worker.error_message = Some(message.to_owned());
        if self.mission.is_some() && code == ErrorCode::Error502 {
            // Nothing runs for it yet, and another worker may take it.
            self.put_back();
            let wait = settings.timing.backoff_after(self.worker.session_errors + 1);
            self.worker.session_errors += 1;
            self.worker.next_attempt_at = Some(later(self.now, wait));
        } else if self.mission.is_some() {
            self.retry_or_fail(code, message, settings);
        } else {
            self.worker.session_errors += 1;
            let errors = self.worker.session_errors;
            if errors > settings.adjustable.max_retries {
                self.log(
                    EventKind::SessionFailed,
                    json!({
                        "worker_id": self.worker.id, "error_code": ErrorCode::Error104,
                        "error_message": format!("{errors} in a row, the last: {code}"),
                        "proxy_name": self.proxy_name(),
                    }),
                );
                self.worker.error_code = Some(ErrorCode::Error104);
            }
            let is_urgent = errors <= settings.adjustable.max_retries && blame == Blame::Proxy;
            let wait = settings.timing.backoff_after(errors);
            self.worker.next_attempt_at = (!is_urgent).then(|| later(self.now, wait));
        }
        self.close(CloseReason::Error, settings)
    }

    pub(super) fn blame(&mut self, blame: Blame, settings: &Settings) {
        if blame == Blame::Proxy
            && let Some(proxy) = &self.proxy
        {
            self.step.blamed = Some((proxy.id.clone(), settings.timing.max_proxy_failures));
        }
    }

    /// The session is to end; it has ended when the worker says so, or when its time is up.
    pub(super) fn close(mut self, reason: CloseReason, settings: &Settings) -> Step {
        let by = later(self.now, settings.timing.close_patience);
        self.worker.close_reason = Some(reason);
        self.worker.close_by = Some(by);
        self.worker.stop_by = None;
        self.worker.waiting = Some(Waiting::SessionEnd);
        let is_scraping = self.worker.status == WorkerStatus::Scraping;
        if reason == CloseReason::Error || is_scraping && reason == CloseReason::Canceled {
            self.worker.status = WorkerStatus::Error;
        }
        self.done()
    }

    pub(super) fn closed(mut self, is_confirmed: bool) -> Step {
        let has_session = self.worker.session_id.is_some();
        if let Some(reason) = self.worker.close_reason.take()
            && has_session
        {
            let mut details = json!({ "worker_id": self.worker.id, "reason": reason });
            if !is_confirmed {
                details["confirmed"] = json!(false);
            }
            if let Some(name) = self.proxy_name() {
                details["proxy_name"] = json!(name);
            }
            self.log(EventKind::SessionTerminated, details);
        }
        // Only now does nothing run any more for a mission that names its job still.
        let is_stopped = self.worker.status == WorkerStatus::Scraping;
        let has_job = |(_, mission): &(Guard, Mission)| mission.worker_job_id.is_some();
        if is_stopped || self.mission.as_ref().is_some_and(has_job) {
            self.put_back();
        }
        if self.mission.is_none() {
            self.worker.current_mission_id = None;
        }
        self.worker.status = WorkerStatus::Idle;
        self.worker.session_count = 0;
        self.worker.session_id = None;
        self.worker.session_started_at = None;
        self.worker.session_accepted = false;
        self.worker.close_by = None;
        self.worker.stop_by = None;
        self.worker.unreachable_since = None;
        self.worker.unclosed = !is_confirmed;
        self.worker.waiting = None;
        self.step.releases_proxy = true;
        self.done()
    }
}
