//! Ids in paths.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::problem::{Code, Problem};

/// The one variable segment of a path, read as an id.
#[derive(Debug)]
pub(crate) struct Id<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for Id<T>
where
    T: FromStr<Err: Display>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let bad = |detail: String| Problem::new(Code::BadId, detail);
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| bad(rejection.body_text()))?;
        text.parse().map(Self).map_err(|error| bad(format!("{text:?} is not an id: {error}")))
    }
}
