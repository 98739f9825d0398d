//! Ends that nobody wished for.

use serde_json::json;

use super::super::{Step, later};
use super::{Draft, Session, View};
use crate::api::{JobReport, JobStatus};
use crate::code::{Blame, ErrorCode};
use crate::model::{CloseReason, EventKind, Waiting, WorkerStatus};
use crate::settings::Settings;

impl Draft {
    /// A job that was told to stop: by a person, by `stop`, or because it took too long.
    pub(super) fn stopping_job_is(
        self,
        job: &JobReport,
        session: Session,
        settings: &Settings,
    ) -> Option<Step> {
        match job.status {
            JobStatus::Pending | JobStatus::Queued | JobStatus::Running | JobStatus::Other(_) => {
                None
            }
            JobStatus::Paused
            | JobStatus::Completed
            | JobStatus::Empty
            | JobStatus::Failed
            | JobStatus::Cancelled => Some(self.stopped(session, settings)),
        }
    }

    pub(super) fn stopping(mut self, settings: &Settings) -> Step {
        self.worker.stop_by = Some(later(self.now, settings.timing.stop_patience));
        self.waits_for(Waiting::JobStop);
        self.done()
    }

    pub(super) fn stopped(mut self, session: Session, settings: &Settings) -> Step {
        self.worker.stop_by = None;
        if self.has_timed_out(settings) {
            let message = format!("not done within {:?}", settings.timing.timeout_job);
            return self.scrape_failed(ErrorCode::Error202, message, settings, session);
        }
        if self.mission.is_some() {
            // `stop`: the mission goes back, and the session is closed next.
            self.put_back();
        }
        self.worker.status = WorkerStatus::Ready;
        self.worker.current_mission_id = None;
        self.worker.waiting = Some(Waiting::Mission);
        self.done()
    }

    /// The job that was told to stop has not: its session ends it.
    pub(super) fn gave_up(mut self, message: String, settings: &Settings) -> Step {
        if self.has_timed_out(settings) {
            return self.scrape_failed(ErrorCode::Error202, message, settings, Session::Lost);
        }
        self.worker.error_message = Some(message);
        self.close(CloseReason::Error, settings)
    }

    pub(super) fn has_timed_out(&self, settings: &Settings) -> bool {
        let started = self.mission.as_ref().and_then(|(_, mission)| mission.phase_started_at);
        started.is_some_and(|time| self.now >= later(time, settings.timing.timeout_job))
    }

    /// The worker does not know the job: the mission goes back to the queue when the session, which
    /// may have another, is closed.
    pub(super) fn job_vanished(mut self, view: &View, settings: &Settings) -> Step {
        if self.mission.is_none() || self.worker.stop_by.is_some() {
            return self.stopped(Session::Lost, settings);
        }
        let job_id = view.mission.as_ref().and_then(|mission| mission.worker_job_id.clone());
        self.worker.error_message = job_id.map(|id| format!("it does not know the job {id}"));
        self.close(CloseReason::Error, settings)
    }

    pub(super) fn worker_gone(mut self, message: &str, settings: &Settings) -> Step {
        self.worker.error_code = Some(ErrorCode::Error502);
        self.worker.error_message = Some(message.to_owned());
        self.log(
            EventKind::SessionFailed,
            json!({
                "worker_id": self.worker.id, "error_code": ErrorCode::Error502,
                "error_message": message, "blame": Blame::Worker, "proxy_name": self.proxy_name(),
            }),
        );
        self.worker.session_errors += 1;
        let wait = settings.timing.backoff_after(self.worker.session_errors);
        self.worker.next_attempt_at = Some(later(self.now, wait));
        self.close(CloseReason::Error, settings)
    }

    pub(super) fn requeue(mut self) -> Step {
        self.put_back();
        self.done()
    }

    pub(super) fn drop_mission(mut self) -> Step {
        self.worker.current_mission_id = None;
        self.done()
    }

    /// The mission goes back to where it was in the queue.
    pub(super) fn put_back(&mut self) {
        if let Some((_, mission)) = &mut self.mission {
            crate::machine::mission::back_to_the_queue(mission);
            self.worker.current_mission_id = None;
            self.log(EventKind::MissionQueued, json!({ "queued_by": "system" }));
        }
    }
}
