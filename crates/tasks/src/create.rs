//! What a request for a task must be, and how it becomes a row. Parsed here once; past this
//! point a task cannot be malformed.

use std::time::Duration;

use lavra_db::{Clock, hex, key_of};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::model::{EventId, TaskId};
use crate::store::{Key, NewRow};

pub const MAX_METADATA: usize = 8 * 1024;
const DEFAULT_PRIORITY: i16 = 1;
const MAX_RETRIES: i32 = 1000;
const MAX_DELAY: u64 = 366 * 24 * 3600;
const MAX_KEY: usize = 255;

/// A request for a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub payload: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The same type and payload again answers the first task instead of making another.
    #[serde(default)]
    pub idempotent: bool,
    /// Stands in for the hash of the payload where only the caller knows what counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<u64>,
    /// The request's `Idempotency-Key`.
    #[serde(skip)]
    pub key: Option<String>,
    /// Whose key it is: the same one of another caller is another request.
    #[serde(skip)]
    pub caller: Option<String>,
}

/// What the service knows of a type when it makes a task of it.
#[derive(Clone, Copy, Debug)]
pub struct TypePolicy {
    pub max_retries: i32,
    /// Runs of the system (cleanup, extraction, fleet) are never the same run twice.
    pub may_be_idempotent: bool,
}

impl NewTask {
    /// Checks the request and gives it its ids.
    pub fn into_row(self, policy: TypePolicy, clock: &Clock) -> Result<NewRow> {
        check_kind(&self.kind)?;
        check_text("payload", &self.payload)?;
        let metadata = self.metadata.unwrap_or_else(|| json!({}));
        if !metadata.is_object() {
            return invalid("metadata must be a JSON object");
        }
        check_text("metadata", &metadata)?;
        let metadata = metadata.to_string();
        if metadata.len() > MAX_METADATA {
            return invalid(format!(
                "metadata has {} bytes; {MAX_METADATA} are allowed: put what is large into the payload",
                metadata.len()
            ));
        }
        let max_retries = self.max_retries.unwrap_or(policy.max_retries);
        if !(0..=MAX_RETRIES).contains(&max_retries) {
            return invalid(format!("max_retries must be between 0 and {MAX_RETRIES}"));
        }
        if self.delay_seconds.is_some_and(|delay| delay > MAX_DELAY) {
            return invalid(format!("delay_seconds must be at most {MAX_DELAY} (a year)"));
        }
        let input_hash = match self.input_hash {
            Some(hash) if !is_hash(&hash) => {
                return invalid("input_hash must be 64 lower-case hexadecimal digits (a SHA-256)");
            }
            Some(hash) => Some(hash),
            None if self.idempotent => Some(hash(&self.kind, &self.payload)?),
            None => None,
        };
        if input_hash.is_some() && !policy.may_be_idempotent {
            return invalid(format!("a task of the type {} cannot be idempotent", self.kind));
        }
        let payload = self.payload.to_string();
        let caller = self.caller.as_deref();
        let key = self.key.map(|key| fingerprinted(caller, &key, &self.kind, &payload));
        let key = key.transpose()?;
        let detail = json!({
            "action": "create",
            "request": { "type": self.kind, "payload_bytes": payload.len(), "idempotent": input_hash.is_some() },
        });
        Ok(NewRow {
            id: TaskId(clock.new_id()),
            event: EventId(clock.new_id()),
            kind: self.kind,
            priority: self.priority.unwrap_or(DEFAULT_PRIORITY),
            metadata,
            payload,
            input_hash,
            max_retries,
            delay: self.delay_seconds.filter(|delay| *delay > 0).map(Duration::from_secs),
            detail: detail.to_string(),
            key,
        })
    }
}

fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(text.into()))
}

/// A name that can stand in a queue's name, a URL and a log line.
pub fn check_kind(kind: &str) -> Result<()> {
    let starts_well = kind.starts_with(|c: char| c.is_ascii_alphabetic());
    let goes_on_well = kind.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if !starts_well || !goes_on_well || kind.len() > 128 {
        return invalid(format!(
            "{kind:?} is not a task type: a letter, then letters, digits, '_', '.', '-', 128 at most"
        ));
    }
    Ok(())
}

/// PostgreSQL's JSON cannot hold the character U+0000.
pub(crate) fn check_text(what: &str, value: &Value) -> Result<()> {
    let clean = match value {
        Value::String(text) => !text.contains('\0'),
        Value::Array(items) => return items.iter().try_for_each(|item| check_text(what, item)),
        Value::Object(fields) => {
            return fields.iter().try_for_each(|(name, item)| {
                if name.contains('\0') { zero(what) } else { check_text(what, item) }
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    if clean { Ok(()) } else { zero(what) }
}

fn zero(what: &str) -> Result<()> {
    invalid(format!("{what} holds the character U+0000, which cannot be stored"))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// SHA-256 of the RFC 8785 canonical form of type and payload.
fn hash(kind: &str, payload: &Value) -> Result<String> {
    let canonical = serde_json_canonicalizer::to_vec(&json!({ "type": kind, "payload": payload }))
        .map_err(|error| Error::Invalid(format!("the payload has no canonical form: {error}")))?;
    Ok(hex(&Sha256::digest(canonical)))
}

fn fingerprinted(caller: Option<&str>, key: &str, kind: &str, payload: &str) -> Result<Key> {
    let printable = key.bytes().all(|b| (0x20..0x7f).contains(&b));
    if key.is_empty() || key.len() > MAX_KEY || !printable {
        return invalid(format!("Idempotency-Key must be 1 to {MAX_KEY} printable characters"));
    }
    let mut digest = Sha256::new();
    digest.update(kind);
    digest.update([0]);
    digest.update(payload);
    Ok(Key { key: key_of(caller, key), fingerprint: hex(&digest.finalize()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: Value) -> Result<NewRow, String> {
        let task: NewTask = serde_json::from_value(json).map_err(|error| error.to_string())?;
        let policy = TypePolicy { max_retries: 3, may_be_idempotent: true };
        let clock = test_clock();
        task.into_row(policy, &clock).map_err(|error| error.to_string())
    }

    fn test_clock() -> Clock {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("clock.duckdb");
        let options = lavra_db::DuckOptions::default();
        let duck = lavra_db::Duck::open(&path, lavra_db::Schema::default(), options).unwrap();
        duck.clock().clone()
    }

    #[test]
    fn key_order_and_number_form_do_not_change_the_hash() {
        let one = request(json!({"type": "a", "payload": {"x": 1.0, "y": 2}, "idempotent": true}));
        let two = request(json!({"type": "a", "payload": {"y": 2, "x": 1}, "idempotent": true}));
        assert_eq!(one.unwrap().input_hash, two.unwrap().input_hash);
    }

    #[test]
    fn the_type_is_part_of_the_hash() {
        let one = request(json!({"type": "a", "payload": {}, "idempotent": true})).unwrap();
        let two = request(json!({"type": "b", "payload": {}, "idempotent": true})).unwrap();
        assert_ne!(one.input_hash, two.input_hash);
    }

    #[test]
    fn bad_requests_are_refused_with_the_reason() {
        let long = "x".repeat(MAX_METADATA);
        for (json, says) in [
            (json!({"type": ""}), "is not a task type"),
            (json!({"type": "a b"}), "is not a task type"),
            (json!({"type": "a", "metadata": []}), "must be a JSON object"),
            (json!({"type": "a", "metadata": {"x": long}}), "bytes"),
            (json!({"type": "a", "payload": {"x": ["\0"]}}), "U+0000"),
            (json!({"type": "a", "payload": {"\0": 1}}), "U+0000"),
            (json!({"type": "a", "input_hash": "abc"}), "64 lower-case hexadecimal"),
            (json!({"type": "a", "max_retries": -1}), "max_retries"),
            (json!({"type": "a", "delay_seconds": 99_999_999_999_u64}), "delay_seconds"),
            (json!({"type": "a", "colour": "red"}), "unknown field"),
            (json!({"payload": {}}), "missing field"),
        ] {
            let error = request(json.clone()).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
    }
}
