//! What an answer means: the statuses and the words of the specification.

use serde_json::Value;

use super::{
    Answer, JobReport, JobStatus, Lost, Reply, SessionStatus, Trouble, WriteReport, WriteStatus,
};
use crate::code::ErrorCode;

/// The most of someone's message that is kept.
const MESSAGE: usize = 500;

pub(super) fn of_worker(
    answer: Result<Answer, Lost>,
    read: impl FnOnce(&Value) -> Option<Reply>,
) -> Reply {
    let code = |_: &Lost| ErrorCode::Error502;
    of(answer, ErrorCode::Error502, code, read)
}

pub(super) fn of_writer(
    answer: Result<Answer, Lost>,
    read: impl FnOnce(&Value) -> Option<Reply>,
) -> Reply {
    let code = |lost: &Lost| match lost {
        Lost::Refused(_) => ErrorCode::Error301,
        Lost::Timeout(_) => ErrorCode::Error302,
        Lost::Broken(_) => ErrorCode::Error300,
    };
    of(answer, ErrorCode::Error300, code, read)
}

fn of(
    answer: Result<Answer, Lost>,
    failed: ErrorCode,
    lost: impl FnOnce(&Lost) -> ErrorCode,
    read: impl FnOnce(&Value) -> Option<Reply>,
) -> Reply {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let code = lost(&error);
            let (Lost::Refused(text) | Lost::Timeout(text) | Lost::Broken(text)) = error;
            return Reply::Trouble(Trouble::Away { code, message: text });
        }
    };
    let away = |message: String| Reply::Trouble(Trouble::Away { code: failed, message });
    match answer.status {
        200..=299 => {
            let body = match serde_json::from_slice(&answer.body) {
                Ok(body) => body,
                // `200 OK` without a body is what the specification shows for the calls that tell nothing.
                Err(_) if answer.body.is_empty() => Value::Null,
                Err(_) => return away(format!("{} with no JSON", answer.status)),
            };
            read(&body).unwrap_or_else(|| away(format!("{} without what is needed", answer.status)))
        }
        404 => Reply::Unknown,
        429 => Reply::Trouble(Trouble::Busy { after: answer.retry_after }),
        400 | 413 | 422 => Reply::Trouble(Trouble::Refused { message: said(&answer) }),
        401 | 403 => away(format!("{}: it does not take our API key", answer.status)),
        _ => away(said(&answer)),
    }
}

/// The status, with what the answer says about it where it is JSON; never a page of HTML.
fn said(answer: &Answer) -> String {
    let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let text = body.as_ref().and_then(message);
    match text {
        Some(text) => format!("{}: {text}", answer.status),
        None => answer.status.to_string(),
    }
}

fn message(body: &Value) -> Option<String> {
    let found = ["error_message", "message", "error", "detail", "title"]
        .iter()
        .find_map(|name| body.get(name)?.as_str());
    found.map(|text| text.chars().take(MESSAGE).collect())
}

pub(super) fn session(body: &Value) -> Option<Reply> {
    let status = match body.get("status")?.as_str()? {
        "initializing" => SessionStatus::Initializing,
        "connecting" => SessionStatus::Connecting,
        "authenticating" => SessionStatus::Authenticating,
        "warming_up" => SessionStatus::WarmingUp,
        "ready" => SessionStatus::Ready,
        "scraping" => SessionStatus::Scraping,
        "stuck" => SessionStatus::Stuck,
        "disconnected" => SessionStatus::Disconnected,
        "terminated" => SessionStatus::Terminated,
        other => SessionStatus::Other(other.chars().take(40).collect()),
    };
    Some(Reply::Session(status))
}

pub(super) fn started(body: &Value) -> Option<Reply> {
    let job_id = body.get("job_id")?.as_str()?;
    let is_usable = !job_id.is_empty() && job_id.len() <= 100 && !job_id.contains(['/', '\\']);
    is_usable.then(|| Reply::Started { job_id: job_id.to_owned() })
}

pub(super) fn job(body: &Value) -> Option<Reply> {
    let status = match body.get("status")?.as_str()? {
        "pending" => JobStatus::Pending,
        "queued" => JobStatus::Queued,
        "running" => JobStatus::Running,
        "completed" => JobStatus::Completed,
        "empty" => JobStatus::Empty,
        "failed" => JobStatus::Failed,
        "cancelled" | "canceled" => JobStatus::Cancelled,
        "paused" => JobStatus::Paused,
        other => JobStatus::Other(other.chars().take(40).collect()),
    };
    let number = |name| body.get(name)?.as_i64()?.try_into().ok();
    let job = JobReport {
        status,
        ads_count: number("ads_count"),
        progress_pct: number("progress_pct"),
        error_code: word(body, "error_code"),
        blame: word(body, "blame"),
        message: message(body),
    };
    Some(Reply::Job { job, session: None })
}

pub(super) fn accepted(body: &Value) -> Option<Reply> {
    let job_id = match body.get("job_id") {
        None | Some(Value::Null) => None,
        Some(id) => Some(id.as_str().filter(|id| !id.is_empty() && id.len() <= 100)?.to_owned()),
    };
    Some(Reply::Accepted { job_id })
}

pub(super) fn write(body: &Value) -> Option<Reply> {
    let status = match body.get("status")?.as_str()? {
        "processing" => WriteStatus::Processing,
        "completed" => WriteStatus::Completed,
        "failed" => WriteStatus::Failed,
        "partial" => WriteStatus::Partial,
        other => WriteStatus::Other(other.chars().take(40).collect()),
    };
    let progress = body.get("progress");
    let number = |name| progress?.get(name)?.as_i64();
    let items = body.get("failed_items").and_then(Value::as_array);
    Some(Reply::Write(WriteReport {
        status,
        total: number("total"),
        processed: number("processed"),
        success_count: number("success_count"),
        failed_count: number("failed_count"),
        failed_items: items.cloned().unwrap_or_default(),
        error_code: word(body, "error_code"),
        message: message(body),
    }))
}

fn word<T: std::str::FromStr>(body: &Value, name: &str) -> Option<T> {
    body.get(name)?.as_str()?.parse().ok()
}
