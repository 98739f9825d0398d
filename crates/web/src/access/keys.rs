//! Keys, for admins: made, listed, revoked. The key itself is answered once, when it is made.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::credential::KeyText;
use super::model::{self, KeyId, Standing};
use super::verify::Access;
use super::{Caller, Role};
use crate::app::Site;
use crate::body::JsonBody;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::{Code, Problem};

const LONGEST_NAME: usize = 100;
const SHORTEST_LIFE: i64 = 60;
const LONGEST_LIFE: i64 = 10 * 366 * 24 * 3600;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(list, make)).routes(routes!(revoke))
}

/// A key without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey, example = json!({
    "id": "7k2m9qxd",
    "name": "grafana",
    "role": "viewer",
    "standing": "valid",
    "created_at": "2026-11-16T20:30:00Z",
    "last_used_at": "2026-11-16T20:41:00Z",
    "expires_at": null,
    "revoked_at": null,
}))]
pub(crate) struct Key {
    id: String,
    name: String,
    role: Role,
    /// `valid`, `expired` or `revoked`.
    standing: &'static str,
    created_at: Timestamp,
    /// To the minute.
    last_used_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

impl Key {
    fn new(key: model::Key, now: Timestamp) -> Self {
        let standing = match key.standing(now) {
            Standing::Valid => "valid",
            Standing::Expired => "expired",
            Standing::Revoked => "revoked",
        };
        Self {
            id: key.id.0,
            name: key.name,
            role: key.role,
            standing,
            created_at: key.created_at,
            last_used_at: key.last_used_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKeys)]
pub(crate) struct Keys {
    items: Vec<Key>,
}

/// List keys, the newest first; never their secrets
#[utoipa::path(
    get,
    path = "/keys",
    tag = "keys",
    operation_id = "list_keys",
    responses((status = 200, description = "All of them, also those that are over", body = Keys)),
)]
pub(crate) async fn list(State(access): State<Arc<Access>>) -> Result<Json<Keys>, Problem> {
    let (found, now) = (access.store.keys().await?, access.now());
    Ok(Json(Keys { items: found.into_iter().map(|key| Key::new(key, now)).collect() }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewApiKey, example = json!({"name": "grafana", "role": "viewer", "expires_in_seconds": 7_776_000}))]
pub(crate) struct NewKey {
    /// For people: what it is used for. One line of at most 100 letters.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// A minute to ten years; without it the key lasts until it is revoked.
    #[schema(minimum = 60, maximum = 316_224_000)]
    pub(crate) expires_in_seconds: Option<i64>,
}

impl NewKey {
    fn check(&self) -> Result<(), Problem> {
        let letters = self.name.chars().count();
        if !(1..=LONGEST_NAME).contains(&letters)
            || self.name.contains(char::is_control)
            || self.name.trim() != self.name
        {
            let rule = format_args!("must be one line of 1 to {LONGEST_NAME} letters");
            return Err(Problem::field("name", rule));
        }
        let is_in_range = |life: i64| (SHORTEST_LIFE..=LONGEST_LIFE).contains(&life);
        if !self.expires_in_seconds.is_none_or(is_in_range) {
            let rule = format_args!("must be {SHORTEST_LIFE} to {LONGEST_LIFE}");
            return Err(Problem::field("expires_in_seconds", rule));
        }
        Ok(())
    }
}

/// A new key, with its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MadeApiKey, example = json!({
    "id": "7k2m9qxd",
    "name": "grafana",
    "role": "viewer",
    "standing": "valid",
    "created_at": "2026-11-16T20:30:00Z",
    "last_used_at": null,
    "expires_at": null,
    "revoked_at": null,
    "key": "lavra_7k2m9qxd_…",
}))]
pub(crate) struct MadeKey {
    #[serde(flatten)]
    about: Key,
    /// It is shown this once and kept nowhere.
    #[schema(example = "lavra_7k2m9qxd_…")]
    key: String,
}

/// Make a key
///
/// The answer has the key itself, this once: only its hash is stored.
#[utoipa::path(
    post,
    path = "/keys",
    tag = "keys",
    operation_id = "make_key",
    request_body = NewKey,
    responses(
        (status = 201, description = "The key", body = MadeKey),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn make(
    State(access): State<Arc<Access>>,
    caller: Caller,
    JsonBody(order): JsonBody<NewKey>,
) -> Result<(StatusCode, Json<MadeKey>), Problem> {
    let (key, shown) = access.make_key(&order, &caller).await?;
    let about = Key::new(key, access.now());
    Ok((StatusCode::CREATED, Json(MadeKey { about, key: shown })))
}

/// Revoke a key
///
/// It opens nothing from now on, and the sessions that were opened with it are over. It stays in the
/// list.
#[utoipa::path(
    delete,
    path = "/keys/{id}",
    tag = "keys",
    operation_id = "revoke_key",
    params(("id" = String, Path, example = "7k2m9qxd")),
    responses(
        (status = 200, description = "As it is now", body = Key),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn revoke(
    State(access): State<Arc<Access>>,
    caller: Caller,
    Id(id): Id<String>,
) -> Result<Json<Key>, Problem> {
    let key = access.revoke_key(KeyId(id), &caller).await?;
    Ok(Json(Key::new(key, access.now())))
}

/// The same for the pages.
impl Access {
    /// The newest first, also those that are over.
    pub(crate) async fn keys(&self) -> Result<Vec<model::Key>, Problem> {
        Ok(self.store.keys().await?)
    }

    /// A new key, with its text, which is shown this once.
    pub(crate) async fn make_key(
        &self,
        order: &NewKey,
        caller: &Caller,
    ) -> Result<(model::Key, String), Problem> {
        order.check()?;
        let now = self.now();
        let life = order.expires_in_seconds.map(SignedDuration::from_secs);
        let expires_at = life.map(|life| now.checked_add(life).unwrap_or(Timestamp::MAX));
        loop {
            let (text, shown) = KeyText::new();
            let key = model::Key {
                id: text.id,
                name: order.name.clone(),
                role: order.role,
                created_at: now,
                last_used_at: None,
                expires_at,
                revoked_at: None,
            };
            // An id that is taken is as good as impossible, and no reason to fail.
            if self.store.add_key(key.clone(), text.hash).await? {
                tracing::info!(key = %key.id, name = key.name, role = %key.role, by = ?caller.who(), "a key was made");
                return Ok((key, shown));
            }
        }
    }

    /// Ends a key and its sessions.
    pub(crate) async fn revoke_key(
        &self,
        id: KeyId,
        caller: &Caller,
    ) -> Result<model::Key, Problem> {
        let Some(key) = self.store.revoke_key(id.clone(), self.now()).await? else {
            return Err(Problem::new(Code::KeyNotFound, format!("there is no key {id}")));
        };
        tracing::info!(key = %key.id, name = key.name, by = ?caller.who(), "a key was revoked");
        Ok(key)
    }
}
