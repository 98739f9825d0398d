//! Query strings, and the pages they ask for.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::problem::{Code, Problem};

/// The query parameters of a request.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for Params<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // No text of a database can hold it.
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(Problem::new(Code::BadQuery, "a parameter has the character U+0000"));
        }
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => {
                let text = rejection.body_text();
                let text = text.trim_start_matches("Failed to deserialize query string: ");
                Err(Problem::new(Code::BadQuery, text))
            }
        }
    }
}

/// Several words with commas in between; none where nothing is said.
#[derive(Debug)]
pub(crate) struct Several<T>(pub(crate) Vec<T>);

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let word = |part: &str| T::deserialize(part.into_deserializer());
        text.split(',').map(word).collect::<Result<_, _>>().map(Self)
    }
}

/// One page of a list, and where the next one begins.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The `cursor` of the next page; null on the last one.
    pub(crate) next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Makes the page out of up to `limit + 1` items; `key` names the last one shown.
    pub(crate) fn cut<I>(mut found: Vec<I>, limit: usize, key: impl Fn(&I) -> String) -> Self
    where
        T: From<I>,
    {
        let more = found.len() > limit;
        found.truncate(limit);
        let next_cursor = found.last().filter(|_| more).map(key);
        Self { items: found.into_iter().map(T::from).collect(), next_cursor }
    }
}
