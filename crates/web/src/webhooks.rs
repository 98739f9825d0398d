//! Webhooks: who is told of what.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use lavra_notify::{Changes, NewWebhook, Sent, Webhooks, model};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::Site;
use crate::body::JsonBody;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;
use crate::verbs::Verbs;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(list, add))
        .routes(routes!(show, change, remove))
        .verb(routes!(test))
}

/// What a webhook can be told of.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) enum WebhookEvent {
    #[schema(rename = "mission.failed")]
    MissionFailed,
    #[schema(rename = "pool.exhausted")]
    PoolExhausted,
    #[schema(rename = "extraction.complete")]
    ExtractionComplete,
    #[schema(rename = "extraction.short")]
    ExtractionShort,
    #[schema(rename = "task.dead_lettered")]
    TaskDeadLettered,
}

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193a1b2-a000-7000-8000-00000000000c",
    "name": "ops",
    "url": "https://hooks.example.com/…",
    "events": ["mission.failed", "extraction.short"],
    "active": true,
    "created_at": "2026-11-15T20:30:00Z",
    "last_ok_at": "2026-11-15T20:41:07Z",
    "last_error": null,
}))]
pub(crate) struct Webhook {
    id: Uuid,
    name: String,
    /// The scheme and the host. The rest often is a credential and is never answered.
    url: String,
    #[schema(value_type = Vec<WebhookEvent>)]
    events: Vec<&'static str>,
    active: bool,
    created_at: Timestamp,
    /// When it last took something.
    last_ok_at: Option<Timestamp>,
    /// Why it did not since.
    last_error: Option<String>,
}

impl From<model::Webhook> for Webhook {
    fn from(webhook: model::Webhook) -> Self {
        Self {
            id: webhook.id.0,
            name: webhook.name,
            url: webhook.url,
            events: webhook.events.into_iter().map(model::Topic::as_str).collect(),
            active: webhook.active,
            created_at: webhook.created_at,
            last_ok_at: webhook.last_ok_at,
            last_error: webhook.last_error,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookList {
    items: Vec<Webhook>,
}

/// List webhooks, oldest first
#[utoipa::path(
    get,
    path = "/webhooks",
    tag = "webhooks",
    operation_id = "list_webhooks",
    responses((status = 200, description = "All of them", body = WebhookList)),
)]
pub(crate) async fn list(State(webhooks): State<Webhooks>) -> Result<Json<WebhookList>, Problem> {
    let found = webhooks.list().await?;
    Ok(Json(WebhookList { items: found.into_iter().map(Webhook::from).collect() }))
}

/// `events` are all if none are named.
#[derive(ToSchema)]
#[schema(example = json!({
    "name": "ops",
    "url": "https://hooks.example.com/services/T024/B7/x",
    "secret": "a-long-random-text",
    "events": ["mission.failed", "extraction.short"],
}))]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct WebhookAddition {
    #[schema(
        pattern = r"^[^/:\s\x00-\x1f\x7f-\x9f]([^/:\x00-\x1f\x7f-\x9f]{0,98}[^/:\s\x00-\x1f\x7f-\x9f])?$"
    )]
    name: String,
    /// http or https.
    #[schema(pattern = "^https?://", max_length = 2000)]
    url: String,
    /// What requests are signed with.
    #[schema(pattern = "^[!-~]{16,200}$")]
    secret: String,
    #[schema(min_items = 1)]
    events: Option<Vec<WebhookEvent>>,
}

/// Add a webhook
///
/// It is told of what happens from now on.
#[utoipa::path(
    post,
    path = "/webhooks",
    tag = "webhooks",
    operation_id = "add_webhook",
    request_body = WebhookAddition,
    responses(
        (status = 201, description = "It is there", body = Webhook),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn add(
    State(webhooks): State<Webhooks>,
    JsonBody(order): JsonBody<NewWebhook>,
) -> Result<(StatusCode, Json<Webhook>), Problem> {
    let added = webhooks.add(order).await?;
    Ok((StatusCode::CREATED, Json(added.into())))
}

/// Look at a webhook
#[utoipa::path(
    get,
    path = "/webhooks/{id}",
    tag = "webhooks",
    operation_id = "get_webhook",
    params(("id" = String, Path, description = "The id or the name")),
    responses((status = 200, description = "It", body = Webhook), (status = 404, response = Refused)),
)]
pub(crate) async fn show(
    State(webhooks): State<Webhooks>,
    Id(id): Id<String>,
) -> Result<Json<Webhook>, Problem> {
    Ok(Json(webhooks.find(&id).await?.into()))
}

/// What is to be changed; the rest stays as it is.
#[derive(ToSchema)]
#[schema(example = json!({ "active": false }))]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct WebhookAlteration {
    #[schema(
        pattern = r"^[^/:\s\x00-\x1f\x7f-\x9f]([^/:\x00-\x1f\x7f-\x9f]{0,98}[^/:\s\x00-\x1f\x7f-\x9f])?$"
    )]
    name: Option<String>,
    #[schema(pattern = "^https?://", max_length = 2000)]
    url: Option<String>,
    #[schema(pattern = "^[!-~]{16,200}$")]
    secret: Option<String>,
    #[schema(min_items = 1)]
    events: Option<Vec<WebhookEvent>>,
    active: Option<bool>,
}

/// Change, activate or deactivate a webhook
///
/// One that is activated is told of what happens from then on; deliveries that wait for one that is
/// deactivated are not sent.
#[utoipa::path(
    put,
    path = "/webhooks/{id}",
    tag = "webhooks",
    operation_id = "change_webhook",
    params(("id" = String, Path, description = "The id or the name")),
    request_body = WebhookAlteration,
    responses(
        (status = 200, description = "As it is now", body = Webhook),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn change(
    State(webhooks): State<Webhooks>,
    Id(id): Id<String>,
    JsonBody(changes): JsonBody<Changes>,
) -> Result<Json<Webhook>, Problem> {
    let webhook = webhooks.find(&id).await?;
    Ok(Json(webhooks.change(&webhook, changes).await?.into()))
}

/// Remove a webhook
///
/// Deliveries that wait for it are not sent.
#[utoipa::path(
    delete,
    path = "/webhooks/{id}",
    tag = "webhooks",
    operation_id = "remove_webhook",
    params(("id" = String, Path, description = "The id or the name")),
    responses((status = 204, description = "It is gone"), (status = 404, response = Refused)),
)]
pub(crate) async fn remove(
    State(webhooks): State<Webhooks>,
    Id(id): Id<String>,
) -> Result<StatusCode, Problem> {
    let webhook = webhooks.find(&id).await?;
    webhooks.remove(&webhook).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether it took a ping.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "ok": true, "said": "HTTP 200 OK" }))]
pub(crate) struct WebhookTest {
    ok: bool,
    /// What the receiver answered, or why it could not.
    said: String,
}

/// Send a ping to a webhook now
#[utoipa::path(
    post,
    path = "/webhooks/{id}:test",
    tag = "webhooks",
    operation_id = "test_webhook",
    params(("id" = String, Path, description = "The id or the name")),
    responses(
        (status = 200, description = "What came of it", body = WebhookTest),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn test(
    State(webhooks): State<Webhooks>,
    Id(id): Id<String>,
) -> Result<Json<WebhookTest>, Problem> {
    let webhook = webhooks.find(&id).await?;
    let Sent { ok, said } = webhooks.test(&webhook).await?;
    Ok(Json(WebhookTest { ok, said }))
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema;

    use super::*;

    #[test]
    fn the_described_events_are_those_that_there_are() {
        let described = serde_json::to_value(WebhookEvent::schema()).unwrap();
        let there_are = model::Topic::ALL.map(model::Topic::as_str);
        assert_eq!(described["enum"], serde_json::json!(there_are));
    }
}
