//! The job that a worker scrapes a mission by.

use serde_json::json;

use super::super::{Step, later, milliseconds};
use super::{Draft, Session, View, data_url};
use crate::api::{JobReport, JobStatus, SessionStatus};
use crate::code::{Blame, ErrorCode, Phase};
use crate::model::{Checkpoint, CloseReason, EventKind, MissionStatus, Waiting, WorkerStatus};
use crate::settings::{ProxyFailures, Settings};

impl Draft {
    /// A session stands again for the mission that lost its last one.
    pub(super) fn resume(mut self) -> Step {
        let name = self.proxy_name();
        self.worker.status = WorkerStatus::Scraping;
        self.worker.waiting = Some(Waiting::Job);
        if let Some((_, mission)) = &mut self.mission {
            mission.proxy_used = name;
            mission.attempts += 1;
            mission.phase_started_at = Some(self.now);
            mission.waiting = Some(Waiting::Job);
        }
        self.done()
    }

    pub(super) fn started(mut self, job_id: &str) -> Step {
        let Some((_, mission)) = &mut self.mission else { return self.done() };
        mission.worker_job_id = Some(job_id.to_owned());
        mission.phase_started_at = Some(self.now);
        mission.waiting = Some(Waiting::Job);
        let config = json!({
            "date_start": mission.date_start, "date_end": mission.date_end,
            "media_type": mission.media_type, "languages": mission.languages,
        });
        let id = mission.id.clone();
        self.worker.waiting = Some(Waiting::Job);
        self.log(
            EventKind::ScrapeStarted,
            json!({
                "worker_job_id": job_id, "mission_id": id, "mission_config": config,
                "worker_id": self.worker.id,
            }),
        );
        self.done()
    }

    pub(super) fn job_is(
        mut self,
        job: &JobReport,
        session: Option<&SessionStatus>,
        view: &View,
        settings: &Settings,
    ) -> Option<Step> {
        if self.worker.stop_by.is_some() || self.mission.is_none() {
            return self.stopping_job_is(job, Session::of(session), settings);
        }
        let was_away = view.worker.unreachable_since.is_some();
        let session_left = Session::of(session);
        let message = |what: &str| job.message.clone().unwrap_or_else(|| what.to_owned());
        match &job.status {
            JobStatus::Completed => Some(self.scraped(job, settings)),
            JobStatus::Empty => Some(self.empty(settings)),
            JobStatus::Failed => {
                let code = job.error_code.unwrap_or(ErrorCode::Error200);
                let text = message("the scrape job failed");
                if let Some(blame) = job.blame {
                    self.blame(blame, settings);
                }
                Some(self.scrape_failed(code, text, settings, session_left))
            }
            JobStatus::Cancelled => {
                let text = message("cancelled, and not by us");
                Some(self.scrape_failed(ErrorCode::Error201, text, settings, session_left))
            }
            // It must not go on beside the next one.
            JobStatus::Paused => {
                let text = message("the scrape job is paused");
                Some(self.scrape_failed(ErrorCode::Error200, text, settings, Session::Lost))
            }
            JobStatus::Pending | JobStatus::Queued | JobStatus::Running | JobStatus::Other(_) => {
                match session {
                    Some(SessionStatus::Stuck) => {
                        let message = "stuck while scraping";
                        Some(self.session_failed(ErrorCode::Error102, None, message, settings))
                    }
                    Some(SessionStatus::Disconnected) => {
                        let message = "disconnected while scraping";
                        Some(self.session_failed(ErrorCode::Error103, None, message, settings))
                    }
                    Some(SessionStatus::Terminated) => {
                        let (code, blame) = (ErrorCode::Error100, Some(Blame::Nobody));
                        let message = "terminated while scraping";
                        Some(self.session_failed(code, blame, message, settings))
                    }
                    _ => {
                        let told = self.tell_progress(job, settings);
                        let renamed = self.waits_for(Waiting::Job);
                        (told || was_away || renamed).then(|| self.done())
                    }
                }
            }
        }
    }

    pub(super) fn tell_progress(&mut self, job: &JobReport, settings: &Settings) -> bool {
        let Some((_, mission)) = &mut self.mission else { return false };
        let is_due = mission
            .told_at
            .is_none_or(|told| self.now >= later(told, settings.timing.progress_every));
        let Some(count) = job.ads_count.filter(|count| Some(*count) != mission.ads_count) else {
            return false;
        };
        if !is_due {
            return false;
        }
        mission.ads_count = Some(count);
        mission.told_at = Some(self.now);
        let job_id = mission.worker_job_id.clone();
        self.log(
            EventKind::ScrapeProgress,
            json!({
                "worker_job_id": job_id, "ads_count": count, "progress_pct": job.progress_pct,
                "worker_id": self.worker.id,
            }),
        );
        true
    }

    /// The job is done: its data is for the writer, and the worker is free.
    pub(super) fn scraped(mut self, job: &JobReport, settings: &Settings) -> Step {
        let Some((_, mission)) = &mut self.mission else { return self.done() };
        let job_id = mission.worker_job_id.clone().unwrap_or_default();
        let duration = milliseconds(mission.phase_started_at, self.now);
        mission.checkpoint = Some(Checkpoint::Armazenamento);
        mission.worker_data_url =
            self.worker.storage_domain.as_deref().map(|domain| data_url(domain, &job_id));
        mission.ads_count = job.ads_count.or(mission.ads_count);
        mission.retry_count = 0;
        mission.error_code = None;
        mission.error_message = None;
        mission.told_at = None;
        mission.phase_started_at = None;
        mission.waiting = Some(Waiting::Writer);
        let count = mission.ads_count;
        self.log(
            EventKind::ScrapeCompleted,
            json!({
                "worker_job_id": job_id, "ads_count": count, "duration_ms": duration,
                "worker_id": self.worker.id,
            }),
        );
        self.free(settings)
    }

    pub(super) fn empty(mut self, settings: &Settings) -> Step {
        let Some((_, mission)) = &mut self.mission else { return self.done() };
        let job_id = mission.worker_job_id.clone();
        let total = milliseconds(mission.queued_at, self.now);
        mission.ads_count = Some(0);
        crate::machine::mission::end(mission, MissionStatus::Completed, self.now);
        mission.checkpoint = Some(Checkpoint::Finalizado);
        let id = self.worker.id.clone();
        self.log(
            EventKind::ScrapeEmpty,
            json!({ "worker_job_id": job_id, "worker_id": id, "ads_count": 0 }),
        );
        self.log(
            EventKind::MissionCompleted,
            json!({ "total_duration_ms": total, "ads_count": 0, "success_count": 0, "failed_count": 0 }),
        );
        self.free(settings)
    }

    pub(super) fn free(mut self, settings: &Settings) -> Step {
        self.worker.status = WorkerStatus::Ready;
        self.worker.session_count += 1;
        self.worker.current_mission_id = None;
        self.worker.waiting = Some(Waiting::Mission);
        if settings.adjustable.proxy_failures == ProxyFailures::Consecutive {
            self.step.praised = self.proxy.as_ref().map(|proxy| proxy.id.clone());
        }
        self.done()
    }

    /// The job failed: it is sent again on the session that stands, or on a new one.
    pub(super) fn scrape_failed(
        mut self,
        code: ErrorCode,
        message: String,
        settings: &Settings,
        session: Session,
    ) -> Step {
        let job_id = self.mission.as_ref().and_then(|(_, mission)| mission.worker_job_id.clone());
        self.log(
            EventKind::ScrapeFailed,
            json!({
                "worker_job_id": job_id, "error_code": code, "error_message": message,
                "worker_id": self.worker.id, "proxy_name": self.proxy_name(),
            }),
        );
        let goes_on = self.retry_or_fail(code, &message, settings);
        if goes_on && session == Session::Ready && code.phase() == Phase::Scrape {
            if let Some((_, mission)) = &mut self.mission {
                mission.attempts += 1;
                mission.phase_started_at = Some(self.now);
                mission.waiting = Some(Waiting::Job);
            }
            return self.done();
        }
        self.worker.error_code = Some(code);
        self.worker.error_message = Some(message);
        self.close(CloseReason::Error, settings)
    }

    /// Spends a retry of the mission, or fails it; says whether it goes on.
    pub(super) fn retry_or_fail(
        &mut self,
        code: ErrorCode,
        message: &str,
        settings: &Settings,
    ) -> bool {
        let Some((_, mission)) = &mut self.mission else { return false };
        mission.worker_job_id = None;
        mission.error_code = Some(code);
        mission.error_message = Some(message.to_owned());
        if code.is_retried() && mission.retry_count < settings.adjustable.max_retries {
            mission.retry_count += 1;
            mission.waiting = Some(Waiting::Session);
            let attempt = mission.retry_count;
            self.log(
                EventKind::RetryTriggered,
                json!({ "attempt": attempt, "error_code": code, "phase": code.phase() }),
            );
            return true;
        }
        let last = if code.is_retried() { code.when_exhausted() } else { code };
        mission.error_code = Some(last);
        let retries = mission.retry_count;
        crate::machine::mission::end(mission, MissionStatus::Failed, self.now);
        self.log(
            EventKind::MissionFailed,
            json!({
                "error_code": last, "error_message": message, "retry_count": retries,
                "cause": code, "worker_id": self.worker.id,
            }),
        );
        self.worker.current_mission_id = None;
        false
    }
}
