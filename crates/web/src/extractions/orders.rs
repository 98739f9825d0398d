//! Runs: each is a task, which `/tasks/{id}` follows.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use lavra_extract::source::Source;
use lavra_extract::task::{Extract, Order, scope_of};
use lavra_extract::{Month, has_tables};
use lavra_tasks::{Handler, NewTask};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::body::JsonBody;
use crate::headers::{KeyHeader, idempotency_key};
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::{Code, Problem};
use crate::tasks::{LONGEST_KEY, created};
use crate::time::YearMonth;
use crate::wire::Task;

/// Which months of which endpoints.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExtractionRequest, example = json!({
    "from": "2024-01", "to": "2024-03", "endpoints": ["contratos_publicacao"],
}))]
pub(crate) struct Run {
    #[schema(inline)]
    from: YearMonth,
    #[schema(inline)]
    to: YearMonth,
    /// Names of endpoints, with or without the value of their fan-out; none is all usual ones.
    #[serde(default)]
    endpoints: Vec<String>,
    /// Fetches also what is complete.
    #[serde(default)]
    refresh: bool,
    /// The text of its source file, for a source that does not come with the program.
    pub(super) definition: Option<String>,
    /// Another place where the same API is.
    base_url: Option<String>,
}

impl Run {
    pub(super) fn order(self, source: String) -> Order {
        Order {
            source,
            definition: self.definition,
            from: self.from.0,
            to: self.to.0,
            endpoints: self.endpoints,
            refresh: self.refresh,
            retry: false,
            base_url: self.base_url,
        }
    }
}

/// A source without a definition must be one that comes with the program.
pub(super) async fn check(
    app: &App,
    source: &str,
    definition: Option<&str>,
) -> Result<(), Problem> {
    if definition.is_some() || Source::built_in_names().contains(&source) {
        return Ok(());
    }
    if has_tables(&app.database, source).await? {
        let rule = format_args!("is needed: {source} does not come with the program");
        return Err(Problem::field("definition", rule));
    }
    Err(Problem::new(Code::SourceNotFound, format!("there is no source {source:?}")))
}

/// Makes the task of an order; the same `Idempotency-Key` answers the first one.
pub(super) async fn make<H: Handler>(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    order: &impl Serialize,
) -> Result<Response, Problem> {
    let key = idempotency_key(headers, LONGEST_KEY)?;
    let caller = caller.whose().map(str::to_owned);
    let (kind, payload) = (H::KIND.into(), json!(order));
    let task = NewTask { kind, payload, key, caller, ..NewTask::default() };
    created(&app.tasks, task).await
}

/// Extract: make the task of a run
#[utoipa::path(
    post,
    path = "/extractions/{source}:run",
    tag = "extractions",
    operation_id = "run_extraction",
    params(
        ("source" = String, Path, example = "pncp"),
        KeyHeader,
    ),
    request_body = Run,
    responses(
        (status = 201, description = "The task of the run", body = Task, headers(
            ("Location" = String, description = "The path of the task"),
        )),
        (status = 200, description = "An earlier task answers for this request", body = Task),
        (status = 404, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn run(
    State(app): State<Arc<App>>,
    Id(source): Id<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(run): JsonBody<Run>,
) -> Result<Response, Problem> {
    check(&app, &source, run.definition.as_deref()).await?;
    let order = run.order(source);
    // What makes no sense is told before a task is made of it.
    lavra_extract::plan::plan(&order.source()?, &order.wanted(), app.database.clock().now())?;
    make::<Extract>(&app, &caller, &headers, &order).await
}

/// A part of what is in the table; all of it where nothing is said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExtractionRetry, example = json!({"endpoints": ["contratos_publicacao"]}))]
pub(crate) struct Retry {
    #[schema(inline)]
    from: Option<YearMonth>,
    #[schema(inline)]
    to: Option<YearMonth>,
    #[serde(default)]
    endpoints: Vec<String>,
    /// The text of its source file, for a source that does not come with the program.
    definition: Option<String>,
    /// Another place where the same API is.
    base_url: Option<String>,
}

/// Take up what is in the table and not complete, also what has failed: make the task
#[utoipa::path(
    post,
    path = "/extractions/{source}:retry",
    tag = "extractions",
    operation_id = "retry_extraction",
    params(
        ("source" = String, Path, example = "pncp"),
        KeyHeader,
    ),
    request_body = Retry,
    responses(
        (status = 201, description = "The task of the run", body = Task),
        (status = 200, description = "An earlier task answers for this request", body = Task),
        (status = 404, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    Id(source): Id<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(part): JsonBody<Retry>,
) -> Result<Response, Problem> {
    check(&app, &source, part.definition.as_deref()).await?;
    let (from, to) = (part.from.map(|month| month.0), part.to.map(|month| month.0));
    let order = Order {
        source,
        definition: part.definition,
        from: from.unwrap_or(Month::FIRST),
        to: to.unwrap_or(Month::LAST),
        endpoints: part.endpoints,
        refresh: false,
        retry: true,
        base_url: part.base_url,
    };
    scope_of(&order.source()?, from, to, &order.endpoints)?;
    make::<Extract>(&app, &caller, &headers, &order).await
}
