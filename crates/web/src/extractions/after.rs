//! What is done with what was extracted: audits and exports. Each is a task.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use lavra_extract::export::Format;
use lavra_extract::task::{
    AuditOrder, ExportOrder, Exports, ExtractAudit, ExtractExport, scope_of,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::orders::{check, make};
use crate::access::Caller;
use crate::app::App;
use crate::body::JsonBody;
use crate::headers::KeyHeader;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;
use crate::time::YearMonth;
use crate::wire::Task;

/// What is to be audited; all of it where nothing is said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExtractionAudit, example = json!({"from": "2024-01", "to": "2024-03", "repair": true}))]
pub(crate) struct Audit {
    #[schema(inline)]
    from: Option<YearMonth>,
    #[schema(inline)]
    to: Option<YearMonth>,
    #[serde(default)]
    endpoints: Vec<String>,
    /// Asks the source for its totals anew.
    #[serde(default)]
    against_source: bool,
    /// Marks what is damaged, so that the next run fetches it again.
    #[serde(default)]
    repair: bool,
    /// The text of its source file, for a source that does not come with the program.
    definition: Option<String>,
    /// Another place where the same API is.
    base_url: Option<String>,
}

/// Audit what is stored: make the task, whose result is the report
#[utoipa::path(
    post,
    path = "/extractions/{source}:audit",
    tag = "extractions",
    operation_id = "audit_extraction",
    params(
        ("source" = String, Path, example = "pncp"),
        KeyHeader,
    ),
    request_body = Audit,
    responses(
        (status = 201, description = "The task of the audit", body = Task),
        (status = 200, description = "An earlier task answers for this request", body = Task),
        (status = 404, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn audit(
    State(app): State<Arc<App>>,
    Id(source): Id<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(audit): JsonBody<Audit>,
) -> Result<Response, Problem> {
    check(&app, &source, audit.definition.as_deref()).await?;
    let order = AuditOrder {
        source,
        definition: audit.definition,
        from: audit.from.map(|month| month.0),
        to: audit.to.map(|month| month.0),
        endpoints: audit.endpoints,
        against_source: audit.against_source,
        repair: audit.repair,
        base_url: audit.base_url,
    };
    scope_of(&order.source()?, order.from, order.to, &order.endpoints)?;
    make::<ExtractAudit>(&app, &caller, &headers, &order).await
}

/// As files of which kind.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ExportFormat)]
pub(crate) enum As {
    Parquet,
    Csv,
    JsonLines,
}

/// What is to be exported, and where to; all of it where nothing is said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExtractionExport, example = json!({
    "from": "2024-01", "to": "2024-03", "format": "parquet", "out": "pncp/2024",
}))]
pub(crate) struct Export {
    #[schema(inline)]
    from: Option<YearMonth>,
    #[schema(inline)]
    to: Option<YearMonth>,
    #[serde(default)]
    endpoints: Vec<String>,
    format: As,
    /// A name below the server's artefacts.
    #[schema(pattern = r"^[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*$")]
    out: String,
    /// Also what is there of tasks that are not complete.
    #[serde(default)]
    partial: bool,
    /// The text of its source file, for a source that does not come with the program.
    definition: Option<String>,
}

/// Export records as files: make the task, whose result names them
#[utoipa::path(
    post,
    path = "/extractions/{source}:export",
    tag = "extractions",
    operation_id = "export_extraction",
    params(
        ("source" = String, Path, example = "pncp"),
        KeyHeader,
    ),
    request_body = Export,
    responses(
        (status = 201, description = "The task of the export", body = Task),
        (status = 200, description = "An earlier task answers for this request", body = Task),
        (status = 404, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn export(
    State(app): State<Arc<App>>,
    Id(source): Id<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(export): JsonBody<Export>,
) -> Result<Response, Problem> {
    check(&app, &source, export.definition.as_deref()).await?;
    let format = match export.format {
        As::Parquet => Format::Parquet,
        As::Csv => Format::Csv,
        As::JsonLines => Format::JsonLines,
    };
    let order = ExportOrder {
        source,
        definition: export.definition,
        from: export.from.map(|month| month.0),
        to: export.to.map(|month| month.0),
        endpoints: export.endpoints,
        format,
        out: export.out,
        partial: export.partial,
    };
    scope_of(&order.source()?, order.from, order.to, &order.endpoints)?;
    Exports::check_name(&order.out)?;
    make::<ExtractExport>(&app, &caller, &headers, &order).await
}
