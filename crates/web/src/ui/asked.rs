//! What an address asks of a page. Fields of a form that were left empty are not there.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::{Code, Problem};

/// The query of a page.
#[derive(Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        read(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn read<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let filled = form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty());
    let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(filled).finish();
    // No text of a database can hold it.
    if text.contains("%00") {
        return Err(Problem::new(Code::BadQuery, "a parameter has the character U+0000"));
    }
    serde_html_form::from_str(&text)
        .map_err(|error| Problem::new(Code::BadQuery, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Query {
        from: Option<jiff::civil::Date>,
        #[serde(default)]
        id: Vec<String>,
    }

    #[test]
    fn what_is_empty_was_not_asked() {
        let query: Query = read("from=&id=a&id=b&other=1").unwrap();
        assert_eq!(query, Query { from: None, id: vec!["a".into(), "b".into()] });
        assert!(read::<Query>("from=tomorrow").is_err());
        assert!(read::<Query>("id=a%00").is_err(), "which no column can hold");
    }
}
