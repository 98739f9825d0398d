//! What became of a task that a worker holds. Every report names the token of the claim.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use lavra_tasks::machine::Happening;
use lavra_tasks::model::TaskId;
use lavra_tasks::{MAX_METADATA, Tasks};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::body::JsonBody;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;

const LONGEST_STATE: usize = 500;
const LONGEST_DETAIL: usize = 64 * 1024;
/// A longer error is cut, not refused: a worker must be able to fail.
const LONGEST_ERROR: usize = 16 * 1024;
const LONGEST_DELAY: u64 = 366 * 24 * 3600;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReportAnswer, example = json!({"version": 5}))]
pub(crate) struct Reported {
    /// The version of the task that the report made.
    version: i32,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProgressReport, example = json!({"token": 4711, "progress": 40, "state": "Counting 4/10"}))]
pub(crate) struct Step {
    token: i64,
    /// It never goes back within an attempt.
    #[schema(minimum = 0, maximum = 100)]
    progress: i16,
    /// The step in words, one line.
    #[schema(max_length = 500)]
    state: String,
    /// For the event, 64 KB at most.
    #[schema(value_type = Option<Object>)]
    detail: Option<Map<String, Value>>,
    /// Merged over the task's metadata, key by key; 8 KB at most together.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// Say how far the work is
#[utoipa::path(
    post,
    path = "/tasks/{id}:progress",
    tag = "workers",
    operation_id = "report_progress",
    params(("id" = Uuid, Path)),
    request_body = Step,
    responses(
        (status = 200, description = "It is written", body = Reported),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn progress(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    JsonBody(report): JsonBody<Step>,
) -> Result<Json<Reported>, Problem> {
    if !(0..=100).contains(&report.progress) {
        let rule = format_args!("must be between 0 and 100, not {}", report.progress);
        return Err(Problem::field("progress", rule));
    }
    if report.state.len() > LONGEST_STATE || report.state.contains(char::is_control) {
        let rule = format_args!("must be one line of at most {LONGEST_STATE} bytes");
        return Err(Problem::field("state", rule));
    }
    let detail = report.detail.map(Value::Object);
    if detail.as_ref().is_some_and(|detail| detail.to_string().len() > LONGEST_DETAIL) {
        let rule = format_args!("must have at most {LONGEST_DETAIL} bytes");
        return Err(Problem::field("detail", rule));
    }
    let metadata = match report.metadata {
        Some(added) => Some(merged_fits(&tasks, id, added).await?),
        None => None,
    };
    let happening = Happening::Step { progress: report.progress, state: report.state, detail };
    say(&tasks, id, report.token, happening, metadata, None).await
}

/// The metadata to merge, if the task's stay compact with it.
async fn merged_fits(
    tasks: &Tasks,
    id: TaskId,
    added: Map<String, Value>,
) -> Result<Value, Problem> {
    let mut merged = match tasks.task(id).await?.metadata {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    merged.extend(added.clone());
    let size = Value::Object(merged).to_string().len();
    if size > MAX_METADATA {
        let rule = format_args!("would have {size} bytes; {MAX_METADATA} are allowed");
        return Err(Problem::field("metadata", rule));
    }
    Ok(Value::Object(added))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CompletionReport, example = json!({"token": 4711, "result": {"words": 42}}))]
pub(crate) struct Complete {
    token: i64,
    /// A light JSON, or a pointer to what is large.
    result: Option<Value>,
}

/// The work is done
#[utoipa::path(
    post,
    path = "/tasks/{id}:complete",
    tag = "workers",
    operation_id = "complete_task",
    params(("id" = Uuid, Path)),
    request_body = Complete,
    responses(
        (status = 200, description = "It is completed", body = Reported),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn complete(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    JsonBody(report): JsonBody<Complete>,
) -> Result<Json<Reported>, Problem> {
    say(&tasks, id, report.token, Happening::Complete, None, report.result).await
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FailureReport, example = json!({"token": 4711, "error": "the source answered 503", "retry_after_seconds": 60}))]
pub(crate) struct Fail {
    token: i64,
    error: String,
    /// Whether trying again may help.
    #[serde(default = "yes")]
    #[schema(default = true)]
    retryable: bool,
    /// Not before so many seconds; the usual wait between attempts if that is longer.
    #[schema(maximum = 31_622_400)]
    retry_after_seconds: Option<u64>,
}

fn yes() -> bool {
    true
}

/// The attempt failed
///
/// If trying again may help and retries are left, the task waits for its next attempt; otherwise
/// it has failed.
#[utoipa::path(
    post,
    path = "/tasks/{id}:fail",
    tag = "workers",
    operation_id = "fail_task",
    params(("id" = Uuid, Path)),
    request_body = Fail,
    responses(
        (status = 200, description = "It is written", body = Reported),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn fail(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    JsonBody(report): JsonBody<Fail>,
) -> Result<Json<Reported>, Problem> {
    let asked = report.retry_after_seconds.unwrap_or(0);
    if asked > LONGEST_DELAY {
        let rule = format_args!("must be at most {LONGEST_DELAY} (a year)");
        return Err(Problem::field("retry_after_seconds", rule));
    }
    let retry_in = if report.retryable {
        let usual = tasks.backoff().wait(tasks.task(id).await?.retry_count + 1);
        Some(usual.max(Duration::from_secs(asked)))
    } else {
        None
    };
    let happening = Happening::Fail { error: storable(&report.error), retry_in };
    say(&tasks, id, report.token, happening, None, None).await
}

/// The text of an error as it can be stored.
fn storable(error: &str) -> String {
    let longest = error.len().min(LONGEST_ERROR);
    let end = (0..=longest).rev().find(|end| error.is_char_boundary(*end)).unwrap_or(0);
    let cut = error[..end].replace('\0', "\u{FFFD}");
    if end < error.len() { format!("{cut}…") } else { cut }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReleaseReport, example = json!({"token": 4711}))]
pub(crate) struct Release {
    token: i64,
}

/// Give the task back
///
/// For a worker that shuts down: the attempt does not count, the task waits again. For a task that
/// was cancelled it confirms that the worker stopped, and is answered with `task_lost`.
#[utoipa::path(
    post,
    path = "/tasks/{id}:release",
    tag = "workers",
    operation_id = "release_task",
    params(("id" = Uuid, Path)),
    request_body = Release,
    responses(
        (status = 200, description = "It waits again", body = Reported),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn release(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    JsonBody(report): JsonBody<Release>,
) -> Result<Json<Reported>, Problem> {
    say(&tasks, id, report.token, Happening::Interrupt, None, None).await
}

async fn say(
    tasks: &Tasks,
    id: TaskId,
    token: i64,
    happening: Happening,
    metadata: Option<Value>,
    result: Option<Value>,
) -> Result<Json<Reported>, Problem> {
    let version = tasks.report(id, token, happening, metadata, result).await?;
    Ok(Json(Reported { version }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_cut_between_characters() {
        let long = "ä".repeat(LONGEST_ERROR);
        let cut = storable(&long);
        assert!(cut.len() <= LONGEST_ERROR + '…'.len_utf8() && cut.ends_with("ä…"));
        assert_eq!(storable("a\0b"), "a\u{FFFD}b");
    }
}
