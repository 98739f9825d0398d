//! Ids in paths.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::problem::{Code, Problem};

/// The one variable segment of a path, read as an id.
#[derive(Debug)]
pub(crate) struct Id<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for Id<T>
where
    T: FromStr,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let bad = |detail: String| Problem::new(Code::BadId, detail);
        let Ids([text]) = Ids::from_request_parts(parts, state).await?;
        let wrong = || bad(format!("{text:?} is not an id: copy it whole, as the lists show it"));
        text.parse().map(Self).map_err(|_| wrong())
    }
}

/// The variable segments of a path, in their order, as texts.
#[derive(Debug)]
pub(crate) struct Ids<const N: usize>(pub(crate) [String; N]);

impl<S: Send + Sync, const N: usize> FromRequestParts<S> for Ids<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let bad = |detail: String| Problem::new(Code::BadId, detail);
        let Path(texts) = Path::<Vec<String>>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| bad(rejection.body_text()))?;
        // No text of a database can hold it.
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(bad("an id with the character U+0000 names nothing".into()));
        }
        let found = texts.len();
        texts.try_into().map(Self).map_err(|_| bad(format!("{found} ids, and not {N}")))
    }
}
