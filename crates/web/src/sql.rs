//! Questions in SQL, also while this process holds the file.
//!
//! A SELECT can read more than tables: DuckDB reads any file that this process may, and so does
//! PostgreSQL for a superuser. So whoever asks through a socket must be the one who runs the
//! server, and shows it by the token in the lock file, which nobody else can read. PostgreSQL has
//! no such file, and needs none: it can be asked itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use lavra_db::{Database, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::{Caller, Who};
use crate::app::{App, Site};
use crate::body::JsonBody;
use crate::limit::Limit;
use crate::openapi::Refused;
use crate::problem::{Code, Problem};

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(ask))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SqlQuestion, example = json!({
    "query": "SELECT status, count(*) AS tasks FROM kodus_workflow.tasks GROUP BY status",
    "limit": 100,
}))]
pub(crate) struct Question {
    /// One SELECT.
    query: String,
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 100_000, default = 1000)]
    limit: Option<Limit<1000, 100_000>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SqlAnswer, example = json!({"columns": ["status", "tasks"], "rows": [["PENDING", 3]], "truncated": false}))]
pub(crate) struct Answer {
    columns: Vec<String>,
    #[schema(value_type = Vec<Vec<Value>>)]
    rows: Vec<Vec<Value>>,
    /// Whether there were more rows than asked for.
    truncated: bool,
}

/// Ask the database
///
/// It can change nothing. Only for the one who runs the server: by `lavra sql`, which finds the
/// token in the lock file beside the DuckDB file.
#[utoipa::path(
    post,
    path = "/sql",
    tag = "operations",
    operation_id = "ask",
    params(("Authorization" = Option<String>, Header, description = "`Bearer` and the token")),
    request_body = Question,
    responses(
        (status = 200, description = "Columns and rows", body = Answer),
        (status = 403, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn ask(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(question): JsonBody<Question>,
) -> Result<Json<Answer>, Problem> {
    may_ask(&app.database, &caller)?;
    let limit = question.limit.unwrap_or_default().0;
    let answer = app.database.ask(&question.query, limit).await.map_err(refuse)?;
    let lavra_db::Answer { columns, rows, truncated } = answer;
    Ok(Json(Answer { columns, rows, truncated }))
}

/// An admin's key is not enough: it opens what lavra does, not the files of the machine.
fn may_ask(database: &Database, caller: &Caller) -> Result<(), Problem> {
    let refused = |detail| Err(Problem::new(Code::NotAllowed, detail));
    match (caller.who(), database) {
        (Who::Process | Who::Holder, _) => Ok(()),
        (Who::Visitor | Who::Key { .. } | Who::Session { .. }, Database::Duck(_)) => {
            refused("the token in the lock file beside the database is needed")
        }
        (Who::Visitor | Who::Key { .. } | Who::Session { .. }, Database::Postgres(_)) => refused(
            "PostgreSQL is not asked through this server, but directly: lavra --database postgres://… sql",
        ),
    }
}

/// What the database says of the query is for the one who wrote it.
fn refuse(error: Error) -> Problem {
    match error {
        Error::Config(reason) => Problem::invalid(reason),
        Error::Postgres { .. } | Error::Duck { .. } if !error.is_transient() => {
            Problem::invalid(error.to_string())
        }
        other => other.into(),
    }
}
