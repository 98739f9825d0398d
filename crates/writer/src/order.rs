//! The body of `POST /process`, read into something that cannot be wrong.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use crate::model::JobId;
use crate::secret::{Headers, Secret, digest};

const MAX_PATH: usize = 64;
const MAX_HEADERS: usize = 32;

/// Why a request is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It cannot be read: 400.
    Unreadable(String),
    /// Something in it is missing or wrong: 422.
    Invalid { field: &'static str, why: String },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => f.write_str(why),
            Self::Invalid { field, why } => write!(f, "{field}: {why}"),
        }
    }
}

/// What is to be written where.
#[derive(Clone, Debug)]
pub struct Order {
    pub job_id: Option<JobId>,
    pub config: Destination,
    pub source: Source,
    /// The path from the root of the source to the array.
    pub json_path: Vec<String>,
    /// Sent to the source; never stored in the clear nor shown.
    pub headers: Headers,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub schema: String,
    pub table: String,
    pub operation: Operation,
    /// The columns of a unique index: an upsert has them, an insert may.
    pub conflict_key: Vec<String>,
    pub create_table: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Upsert,
    Insert,
}

#[derive(Clone)]
pub enum Source {
    Url(Url),
    /// JSON; all clones are one text.
    Inline(Bytes),
    File(String),
}

/// Without what a query may hold: signatures of buckets stand there.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(&without_query(url)),
            Self::Inline(text) => write!(f, "inline ({} bytes)", text.len()),
            Self::File(path) => write!(f, "file {path:?}"),
        }
    }
}

pub(crate) fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _there_is_none = url.set_password(None);
    let _there_is_none = url.set_username("");
    url.to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'a> {
    job_id: Option<String>,
    config: Option<BodyConfig>,
    #[serde(borrow)]
    source: Option<BodySource<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyConfig {
    table: Option<String>,
    schema: Option<String>,
    operation: Option<String>,
    conflict_key: Option<Value>,
    create_table: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BodySource<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    headers: Option<BTreeMap<String, SecretString>>,
    json_path: Option<String>,
    path: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

fn invalid(field: &'static str, why: impl Into<String>) -> Refused {
    Refused::Invalid { field, why: why.into() }
}

/// What is wrong with a body and where, without what stands there: that may be a token or a signed URL.
fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!("line {}, column {}", error.line(), error.column());
    let is_name = |name: &&str| {
        name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    for trouble in ["unknown field", "duplicate field"] {
        let named = text.strip_prefix(trouble).and_then(|rest| rest.split('`').nth(1));
        if let Some(name) = named.filter(is_name) {
            return format!("{trouble} {name}: {place}");
        }
    }
    format!("something in it is not of the kind that belongs there: {place}")
}

impl Order {
    /// What is inline stays where it is, in the body.
    pub fn parse(body: &Bytes) -> Result<Self, Refused> {
        let unreadable = |error: serde_json::Error| match error.classify() {
            serde_json::error::Category::Data => invalid("body", without_values(&error)),
            _ => Refused::Unreadable(format!("the body is not JSON: {error}")),
        };
        let text = std::str::from_utf8(body)
            .map_err(|_| Refused::Unreadable("the body is not UTF-8".into()))?;
        let read: Body<'_> = serde_json::from_str(text).map_err(unreadable)?;
        let job_id = match read.job_id.as_deref() {
            None | Some("") => None,
            Some(id) => Some(
                JobId::parse(id)
                    .ok_or_else(|| invalid("job_id", "at most 100 letters, digits and -_.:~"))?,
            ),
        };
        let config = read.config.ok_or_else(|| invalid("config", "is missing"))?;
        let mut source = read.source.ok_or_else(|| invalid("source", "is missing"))?;
        let headers = headers(source.headers.take())?;
        let json_path = path(source.json_path.as_deref().unwrap_or_default())?;
        let source = source.read(body, !headers.is_empty())?;
        Ok(Self { job_id, config: config.read()?, source, json_path, headers })
    }

    /// What of it is sealed.
    pub(crate) fn secret(&self) -> Secret {
        let query = match &self.source {
            Source::Url(url) => url.query().map(Into::into),
            Source::Inline(_) | Source::File(_) => None,
        };
        Secret { headers: self.headers.clone(), query }
    }

    /// As it is stored: without headers, and of a URL with a query only what tells it from others.
    pub(crate) fn to_text(&self) -> String {
        let (kind, place, url) = match &self.source {
            Source::Url(url) => {
                let digest = url.query().map(|_| digest(url.as_str()));
                ("url", without_query(url).into(), digest)
            }
            Source::Inline(json) => ("inline", String::from_utf8_lossy(json), None),
            Source::File(path) => ("file", path.into(), None),
        };
        let stored = Stored {
            schema: self.config.schema.clone(),
            table: self.config.table.clone(),
            conflict_key: match self.config.operation {
                Operation::Insert if self.config.conflict_key.is_empty() => None,
                Operation::Insert | Operation::Upsert => Some(self.config.conflict_key.clone()),
            },
            is_insert: self.config.operation == Operation::Insert
                && !self.config.conflict_key.is_empty(),
            create_table: self.config.create_table,
            kind: kind.into(),
            place,
            url,
            json_path: self.json_path.clone(),
        };
        serde_json::to_string(&stored).unwrap_or_default()
    }

    pub(crate) fn from_text(text: &str, secret: Secret) -> Option<Self> {
        let stored: Stored<'_> = serde_json::from_str(text).ok()?;
        let operation = match &stored.conflict_key {
            Some(_) if !stored.is_insert => Operation::Upsert,
            _ => Operation::Insert,
        };
        let conflict_key = stored.conflict_key.unwrap_or_default();
        let source = match stored.kind.as_str() {
            "url" => {
                let mut url: Url = stored.place.parse().ok()?;
                url.set_query(secret.query.as_ref().map(ExposeSecret::expose_secret));
                Source::Url(url)
            }
            "inline" => Source::Inline(stored.place.into_owned().into()),
            _ => Source::File(stored.place.into_owned()),
        };
        let (schema, table) = (stored.schema, stored.table);
        let create_table = stored.create_table;
        let config = Destination { schema, table, operation, conflict_key, create_table };
        let (json_path, headers) = (stored.json_path, secret.headers);
        Some(Self { job_id: None, config, source, json_path, headers })
    }
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    schema: String,
    table: String,
    /// None: an insert.
    conflict_key: Option<Vec<String>>,
    /// An insert all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_insert: bool,
    create_table: bool,
    kind: String,
    place: Cow<'a, str>,
    /// The digest of a URL whose query is not in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    json_path: Vec<String>,
}

impl BodyConfig {
    fn read(self) -> Result<Destination, Refused> {
        let table = self.table.filter(|name| !name.is_empty());
        let table = table.ok_or_else(|| invalid("config.table", "is missing"))?;
        let schema = self.schema.filter(|name| !name.is_empty()).unwrap_or_else(|| "public".into());
        name("config.table", &table)?;
        name("config.schema", &schema)?;
        let key = conflict_key(self.conflict_key)?;
        let operation = match self.operation.as_deref() {
            Some("upsert") if key.is_empty() => {
                return Err(invalid("config.conflict_key", "is missing: an upsert needs one"));
            }
            Some("upsert") => Operation::Upsert,
            Some("insert") => Operation::Insert,
            None => return Err(invalid("config.operation", "is missing: upsert or insert")),
            Some(_) => return Err(invalid("config.operation", "is upsert or insert")),
        };
        let create_table = self.create_table.unwrap_or(false);
        Ok(Destination { schema, table, operation, conflict_key: key, create_table })
    }
}

/// `"id"`, `"a, b"` or `["a", "b"]`.
fn conflict_key(value: Option<Value>) -> Result<Vec<String>, Refused> {
    let wrong =
        || invalid("config.conflict_key", "is a column, or several: \"id\", [\"a\", \"b\"]");
    let names: Vec<String> = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text
            .split(',')
            .map(|part| part.trim().to_owned())
            .filter(|part| !part.is_empty())
            .collect(),
        Some(Value::Array(items)) => items
            .into_iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(wrong()),
    };
    for text in &names {
        name("config.conflict_key", text)?;
    }
    Ok(names)
}

/// A name to be looked up. It is never put into a statement; this only tells nonsense early.
fn name(field: &'static str, text: &str) -> Result<(), Refused> {
    let is_wrong =
        |letter: char| letter.is_control() || matches!(letter, '"' | '\'' | '`' | ';' | '\\');
    if text.is_empty() || text.len() > 63 || text.chars().any(is_wrong) {
        return Err(invalid(field, "is a plain name of at most 63 bytes, without quotes"));
    }
    Ok(())
}

fn path(text: &str) -> Result<Vec<String>, Refused> {
    let text = text.trim();
    let text = text.strip_prefix('$').unwrap_or(text);
    let text = text.strip_prefix('.').unwrap_or(text);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
    if parts.len() > MAX_PATH || parts.iter().any(String::is_empty) {
        return Err(invalid("source.json_path", "is names with dots between: data.items"));
    }
    Ok(parts)
}

fn headers(
    given: Option<BTreeMap<String, SecretString>>,
) -> Result<BTreeMap<String, SecretString>, Refused> {
    let given = given.unwrap_or_default();
    if given.len() > MAX_HEADERS {
        return Err(invalid("source.headers", "are too many"));
    }
    for (name, value) in &given {
        let is_ours =
            ["host", "content-length", "transfer-encoding", "connection", "accept-encoding"]
                .contains(&name.to_ascii_lowercase().as_str());
        let fits = reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && reqwest::header::HeaderValue::from_str(value.expose_secret()).is_ok();
        if is_ours || !fits {
            return Err(invalid("source.headers", "one of them cannot be sent"));
        }
    }
    Ok(given)
}

impl BodySource<'_> {
    fn read(self, body: &Bytes, has_headers: bool) -> Result<Source, Refused> {
        let kind = self.kind.as_deref();
        if has_headers && kind != Some("url") {
            return Err(invalid("source.headers", "only a url has headers"));
        }
        match kind {
            Some("url") => {
                let text = self.url.ok_or_else(|| invalid("source.url", "is missing"))?;
                Ok(Source::Url(source_url(&text)?))
            }
            Some("inline") => match self.data {
                None => Err(invalid("source.data", "is missing")),
                Some(data) => Ok(Source::Inline(body.slice_ref(data.get().as_bytes()))),
            },
            Some("file") => {
                let path = self.path.ok_or_else(|| invalid("source.path", "is missing"))?;
                if path.is_empty() || path.contains('\0') {
                    return Err(invalid("source.path", "is not a path"));
                }
                Ok(Source::File(path))
            }
            None => Err(invalid("source.type", "is missing: url, inline or file")),
            Some(_) => Err(invalid("source.type", "is url, inline or file")),
        }
    }
}

fn source_url(text: &str) -> Result<Url, Refused> {
    let url = Url::parse(text).map_err(|error| invalid("source.url", error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("source.url", "is http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("source.url", "may hold no user and password: put them into headers"));
    }
    if url.host().is_none() {
        return Err(invalid("source.url", "has no host"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_body_is_told_without_its_values() {
        for (body, words) in [
            (
                r#"{"source":{"type":"url","headers":"Authorization: Bearer marker"}}"#,
                "line 1, column 64",
            ),
            (r#"{"source":"https://host/x?signature=marker"}"#, "line 1, column"),
            (r#"{"source":{"headers":{"Authorization":["marker"]}}}"#, "line 1"),
            (r#"{"config":{"create_table":"marker"}}"#, "line 1"),
            (r#"{"Bearer marker":1}"#, "line 1"),
            (r#"{"config":{"typo":1}}"#, "unknown field typo"),
            (r#"{"config":{},"config":{}}"#, "duplicate field config"),
        ] {
            let refused = Order::parse(&Bytes::from_static(body.as_bytes())).unwrap_err();
            let said = refused.to_string();
            assert!(said.starts_with("body: ") && said.contains(words), "{body}: {said}");
            assert!(!said.contains("marker") && !said.contains("Bearer"), "{said}");
        }
    }
}
