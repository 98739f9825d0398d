//! Bodies: JSON of a bounded size into a type that cannot be wrong.

use std::fmt;
use std::marker::PhantomData;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

use crate::problem::{Code, Problem};

const MIB: usize = 1024 * 1024;
/// What one task or report may measure.
pub(crate) const SMALL: usize = 4 * MIB;
/// What a batch may.
pub(crate) const LARGE: usize = 64 * MIB;
/// How much of a body that is too large is read and dropped, so that its sender gets to read
/// the answer instead of a cut connection.
const PATIENCE: usize = 64 * MIB;

/// The JSON body of a request, of at most `LIMIT` bytes.
#[derive(Debug)]
pub(crate) struct JsonBody<T, const LIMIT: usize = SMALL>(pub(crate) T);

impl<T, S, const LIMIT: usize> FromRequest<S> for JsonBody<T, LIMIT>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                Code::UnsupportedMediaType,
                "the body must come with Content-Type: application/json",
            ));
        }
        let bytes = read(request.into_body(), LIMIT).await?;
        parse(&bytes).map(Self)
    }
}

/// A body of text, of at most `LIMIT` bytes.
#[derive(Debug)]
pub(crate) struct TextBody<const LIMIT: usize>(pub(crate) String);

impl<S: Send + Sync, const LIMIT: usize> FromRequest<S> for TextBody<LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = read(request.into_body(), LIMIT).await?;
        let text = String::from_utf8(bytes.into());
        text.map(Self).map_err(|_| Problem::invalid("the body is not text in UTF-8"))
    }
}

/// The kind of a body, without its parameters.
pub(crate) fn essence(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    essence.to_ascii_lowercase()
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = essence(headers);
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

pub(crate) async fn read(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let mut stream = body.into_data_stream();
    let (mut kept, mut seen) = (BytesMut::new(), 0);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| {
            Problem::new(Code::MalformedJson, format!("the body ended early: {error}"))
        })?;
        seen += chunk.len();
        if seen > limit {
            kept = BytesMut::new();
        } else {
            kept.extend_from_slice(&chunk);
        }
        if seen > limit.saturating_add(PATIENCE) {
            break;
        }
    }
    if seen > limit {
        let detail = format!("the body has more than the {} MiB that are allowed", limit / MIB);
        return Err(Problem::new(Code::BodyTooLarge, detail).with("limit_bytes", limit));
    }
    Ok(kept.freeze())
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let Object(value) = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| wrong(error.path(), error.inner()))?;
    reader.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

/// What must come as a JSON object. By itself serde would also take a list of the values in the
/// order of the fields, and nobody means that.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

fn wrong(path: &Path, error: &serde_json::Error) -> Problem {
    if error.classify() != Category::Data {
        return malformed(error);
    }
    let item = path.iter().find_map(|segment| match segment {
        Segment::Seq { index } => Some(*index),
        Segment::Map { .. } | Segment::Enum { .. } | Segment::Unknown => None,
    });
    let field = path.to_string();
    let mut problem = match field.as_str() {
        "." => Problem::invalid(error.to_string()),
        field => Problem::invalid(format!("{field}: {error}")).with("field", field),
    };
    if let Some(index) = item {
        problem = problem.with("index", index);
    }
    at(problem, error)
}

fn malformed(error: &serde_json::Error) -> Problem {
    at(Problem::new(Code::MalformedJson, format!("the body is not JSON: {error}")), error)
}

fn at(problem: Problem, error: &serde_json::Error) -> Problem {
    problem.with("line", error.line()).with("column", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only the reading is tested")]
        sizes: Vec<u8>,
    }

    fn answer(text: &[u8]) -> Problem {
        parse::<Sample>(text).unwrap_err()
    }

    #[test]
    fn what_is_no_json_is_malformed_and_what_does_not_fit_is_invalid() {
        for text in [&b""[..], b"{", b"{\"sizes\": [1,]}", b"{\"sizes\": []} 2", b"\xff", b"nul"] {
            assert_eq!(answer(text).code(), Code::MalformedJson, "{text:?}");
        }
        for text in
            ["{}", "[[1]]", "null", "7", "{\"sizes\": 1}", "{\"sizes\": [256]}", "{\"a\": 1}"]
        {
            assert_eq!(answer(text.as_bytes()).code(), Code::InvalidRequest, "{text}");
        }
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        let problem = answer(b"{\"sizes\": [1, \"x\"]}");
        let detail = problem.detail();
        assert!(detail.starts_with("sizes[1]: invalid type: string"), "{detail}");
    }

    #[test]
    fn deep_nesting_is_refused() {
        let text = format!("{{\"sizes\": {}", "[".repeat(100_000));
        let refused =
            parse::<std::collections::BTreeMap<String, serde_json::Value>>(text.as_bytes());
        assert_eq!(refused.unwrap_err().code(), Code::MalformedJson);
    }
}
