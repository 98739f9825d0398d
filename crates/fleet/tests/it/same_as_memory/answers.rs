//! What workers and writers answer, by the dice.

use lavra_fleet::api::{
    JobReport, JobStatus, Reply, SessionStatus, Trouble, WriteReport, WriteStatus,
};
use lavra_fleet::code::{Blame, ErrorCode};
use lavra_fleet::machine::worker::Ask;
use lavra_fleet::machine::writer;

use super::{Both, Dice};

impl Both {
    pub(super) fn worker_says(&mut self, ask: Ask, dice: &mut Dice) -> Reply {
        let away = Reply::Trouble(Trouble::Away {
            code: ErrorCode::Error502,
            message: "nobody there — ação \0 \u{1f600}".into(),
        });
        let refused = Reply::Trouble(Trouble::Refused { message: "no\"'".into() });
        let job = |status, dice: &mut Dice| JobReport {
            status,
            ads_count: Some(dice.roll(50) as i32),
            progress_pct: None,
            error_code: None,
            blame: (dice.roll(2) == 0).then_some(Blame::Proxy),
            message: None,
        };
        let roll = dice.roll(12);
        match ask {
            Ask::OpenSession | Ask::CloseSession | Ask::CancelJob => match roll {
                0 => away,
                1 => refused,
                2 => Reply::Unknown,
                _ => Reply::Done,
            },
            Ask::SessionStatus => match roll {
                0 => away,
                1 => Reply::Session(SessionStatus::Stuck),
                2 => Reply::Session(SessionStatus::Disconnected),
                3 => Reply::Session(SessionStatus::Terminated),
                4 => Reply::Session(SessionStatus::WarmingUp),
                _ => Reply::Session(SessionStatus::Ready),
            },
            Ask::StartScrape => match roll {
                0 => away,
                1 => refused,
                2 => Reply::Unknown,
                _ => Reply::Started { job_id: format!("job_{}", self.next()) },
            },
            Ask::Job => {
                let session = [None, Some(SessionStatus::Ready), Some(SessionStatus::Stuck)];
                let session = session[dice.roll(3) as usize].clone();
                let status = match roll {
                    0 => return away,
                    1 => return Reply::Unknown,
                    2 => JobStatus::Failed,
                    3 | 4 => JobStatus::Empty,
                    5 => JobStatus::Cancelled,
                    6 | 7 => JobStatus::Running,
                    8 => JobStatus::Paused,
                    _ => JobStatus::Completed,
                };
                Reply::Job { job: job(status, dice), session }
            }
        }
    }
}

pub(super) fn writer_says(ask: writer::Ask, dice: &mut Dice) -> Reply {
    let away = Reply::Trouble(Trouble::Away {
        code: ErrorCode::Error301,
        message: "connection refused".into(),
    });
    let report = |status, dice: &mut Dice| WriteReport {
        status,
        total: Some(100),
        processed: Some(dice.roll(100) as i64),
        success_count: Some(90),
        failed_count: Some(dice.roll(2) as i64),
        failed_items: vec![serde_json::json!({ "id": 1, "reason": "bad" })],
        error_code: None,
        message: None,
    };
    let roll = dice.roll(8);
    match ask {
        writer::Ask::Process => match roll {
            0 => away,
            1 => Reply::Trouble(Trouble::Refused { message: "no".into() }),
            2 => Reply::Trouble(Trouble::Busy { after: None }),
            _ => Reply::Accepted { job_id: None },
        },
        writer::Ask::Status => match roll {
            0 => away,
            1 => Reply::Unknown,
            2 => Reply::Write(report(WriteStatus::Failed, dice)),
            3 => Reply::Write(report(WriteStatus::Processing, dice)),
            4 => Reply::Write(report(WriteStatus::Partial, dice)),
            _ => Reply::Write(report(WriteStatus::Completed, dice)),
        },
    }
}
