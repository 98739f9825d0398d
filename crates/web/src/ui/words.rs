//! The domain's enums in the visitor's language.

use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{Checkpoint, MediaType, Mission, MissionStatus, Mode, Waiting};
use lavra_fleet::store::{Counts, Filter, WaitsFor};

use super::texts::{Missions, Words};

/// A mission's state as people count them: status and checkpoint together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Bank,
    Queued,
    Scraping,
    Storing,
    Completed,
    Failed,
    Canceled,
}

impl State {
    pub(crate) const ALL: [Self; 7] = [
        Self::Bank,
        Self::Queued,
        Self::Scraping,
        Self::Storing,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
    ];

    pub(crate) fn of(mission: &Mission) -> Self {
        match mission.status {
            MissionStatus::Queued if mission.queued_at.is_none() => Self::Bank,
            MissionStatus::Queued => Self::Queued,
            MissionStatus::Running => match mission.checkpoint {
                Some(Checkpoint::Armazenamento) => Self::Storing,
                Some(Checkpoint::Atribuido | Checkpoint::Extracao | Checkpoint::Finalizado)
                | None => Self::Scraping,
            },
            MissionStatus::Completed => Self::Completed,
            MissionStatus::Failed => Self::Failed,
            MissionStatus::Canceled => Self::Canceled,
        }
    }

    /// Whether it can still be canceled.
    pub(crate) fn is_open(self) -> bool {
        match self {
            Self::Bank | Self::Queued | Self::Scraping | Self::Storing => true,
            Self::Completed | Self::Failed | Self::Canceled => false,
        }
    }

    /// As addresses and styles have it.
    pub(crate) fn slug(self) -> &'static str {
        match self {
            Self::Bank => "bank",
            Self::Queued => "queued",
            Self::Scraping => "scraping",
            Self::Storing => "storing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.slug() == text)
    }

    /// Of several.
    pub(crate) fn plural(self, t: &Missions) -> &'static str {
        match self {
            Self::Bank => t.state_bank,
            Self::Queued => t.state_queued,
            Self::Scraping => t.state_scraping,
            Self::Storing => t.state_storing,
            Self::Completed => t.state_completed,
            Self::Failed => t.state_failed,
            Self::Canceled => t.state_canceled,
        }
    }

    /// Of one.
    pub(crate) fn name(self, t: &Missions) -> &'static str {
        match self {
            Self::Bank => t.one_bank,
            Self::Queued => t.one_queued,
            Self::Scraping => t.one_scraping,
            Self::Storing => t.one_storing,
            Self::Completed => t.one_completed,
            Self::Failed => t.one_failed,
            Self::Canceled => t.one_canceled,
        }
    }

    pub(crate) fn count(self, counts: &Counts) -> i64 {
        match self {
            Self::Bank => counts.bank,
            Self::Queued => counts.queued,
            Self::Scraping => counts.extracao,
            Self::Storing => counts.armazenamento,
            Self::Completed => counts.completed,
            Self::Failed => counts.failed,
            Self::Canceled => counts.canceled,
        }
    }

    /// Narrows a filter to this state.
    pub(crate) fn narrow(self, filter: &mut Filter) {
        let (status, in_bank, checkpoint) = match self {
            Self::Bank => (MissionStatus::Queued, Some(true), None),
            Self::Queued => (MissionStatus::Queued, Some(false), None),
            Self::Scraping => (MissionStatus::Running, None, Some(Checkpoint::Extracao)),
            Self::Storing => (MissionStatus::Running, None, Some(Checkpoint::Armazenamento)),
            Self::Completed => (MissionStatus::Completed, None, None),
            Self::Failed => (MissionStatus::Failed, None, None),
            Self::Canceled => (MissionStatus::Canceled, None, None),
        };
        filter.status = Some(status);
        filter.in_bank = in_bank;
        filter.checkpoint = checkpoint;
    }
}

pub(crate) fn media(media: MediaType, t: &Missions) -> &'static str {
    match media {
        MediaType::All => t.media_all,
        MediaType::Video => t.media_video,
        MediaType::Image => t.media_image,
    }
}

pub(crate) fn wait(waiting: Waiting, words: &Words) -> &'static str {
    match waiting {
        Waiting::Proxy => words.wait_proxy,
        Waiting::Mission => words.wait_mission,
        Waiting::Session => words.wait_session,
        Waiting::Job => words.wait_job,
        Waiting::JobStop => words.wait_job_stop,
        Waiting::SessionEnd => words.wait_session_end,
        Waiting::Retry => words.wait_retry,
        Waiting::Worker => words.wait_worker,
        Waiting::WorkerBusy => words.wait_worker_busy,
        Waiting::ActiveWriter => words.wait_active_writer,
        Waiting::Writer => words.wait_writer,
        Waiting::WriterBusy => words.wait_writer_busy,
        Waiting::WriterJob => words.wait_writer_job,
        Waiting::Orchestrator => words.wait_orchestrator,
    }
}

pub(crate) fn error(code: ErrorCode, words: &Words) -> &'static str {
    match code {
        ErrorCode::Error100 => words.error_100,
        ErrorCode::Error101 => words.error_101,
        ErrorCode::Error102 => words.error_102,
        ErrorCode::Error103 => words.error_103,
        ErrorCode::Error104 => words.error_104,
        ErrorCode::Error200 => words.error_200,
        ErrorCode::Error201 => words.error_201,
        ErrorCode::Error202 => words.error_202,
        ErrorCode::Error203 => words.error_203,
        ErrorCode::Error300 => words.error_300,
        ErrorCode::Error301 => words.error_301,
        ErrorCode::Error302 => words.error_302,
        ErrorCode::Error303 => words.error_303,
        ErrorCode::Error304 => words.error_304,
        ErrorCode::Error400 => words.error_400,
        ErrorCode::Error401 => words.error_401,
        ErrorCode::Error500 => words.error_500,
        ErrorCode::Error501 => words.error_501,
        ErrorCode::Error502 => words.error_502,
    }
}

/// What is waited for; what only waits its turn waits for the run, where there is none.
pub(crate) fn waits_for(what: WaitsFor, mode: Mode, words: &Words) -> &'static str {
    match (what, mode) {
        (WaitsFor::Turn | WaitsFor::Write, Mode::Off) => words.wait_start,
        (WaitsFor::Turn, Mode::Run | Mode::Drain | Mode::Stop) => words.wait_free_worker,
        (WaitsFor::Write, Mode::Run | Mode::Drain | Mode::Stop) => words.wait_write,
        (WaitsFor::Named(waiting), _) => wait(waiting, words),
    }
}

/// The end of an id: what tells it from others in a list.
pub(crate) fn short(id: &str) -> &str {
    let start = id.len().saturating_sub(8);
    id.get(start..).unwrap_or(id)
}

/// One day, or from one to another.
pub(crate) fn days(mission: &Mission) -> String {
    if mission.date_start == mission.date_end {
        return mission.date_start.to_string();
    }
    format!("{} – {}", mission.date_start, mission.date_end)
}
