//! The forms of pages.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use form_urlencoded::Serializer;
use serde::de::DeserializeOwned;

use super::csrf;
use crate::body;
use crate::problem::{Code, Problem};

/// What a form may measure.
pub(super) const LIMIT: usize = 1024 * 1024;
pub(super) const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// The fields of a form that a page has sent; one that stands several times makes a `Vec`. That the
/// page was ours, by the token, the gate has seen before: no handler can forget it.
#[derive(Debug)]
pub(crate) struct Form<T>(pub(crate) T);

impl<T, S> FromRequest<S> for Form<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_form(request.headers()) {
            let detail = format!("the body must come with Content-Type: {MEDIA_TYPE}");
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        parse(&body::read(request.into_body(), LIMIT).await?).map(Self)
    }
}

pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(MEDIA_TYPE)
}

/// The token is not the handler's business, so that a form may refuse fields that it does not know.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let fields = form_urlencoded::parse(bytes).filter(|(name, _)| name != csrf::FIELD);
    let text = Serializer::new(String::with_capacity(bytes.len())).extend_pairs(fields).finish();
    // No text of a database can hold it.
    if text.contains("%00") {
        return Err(Problem::invalid("a field has the character U+0000"));
    }
    serde_html_form::from_str(&text).map_err(|error| Problem::invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Order {
        #[serde(default)]
        ids: Vec<String>,
        name: String,
        port: Option<u16>,
        #[serde(default)]
        note: Option<String>,
    }

    #[test]
    fn repeated_fields_are_a_list_and_the_token_is_no_field() {
        let text = b"csrf=abc&ids=1&name=a+b%26c&ids=2&port=&note=%C3%A9";
        let order: Order = parse(text).unwrap();
        assert_eq!(order.ids, ["1", "2"]);
        assert_eq!((order.name.as_str(), order.port), ("a b&c", None));
        assert_eq!(order.note.as_deref(), Some("é"));
        assert_eq!(parse::<Order>(b"name=x&ids=1&port=8080").unwrap().port, Some(8080));
    }

    #[test]
    fn what_does_not_fit_is_invalid() {
        for text in ["", "name=a&name=b", "name=a&port=x", "name=a&port=70000", "name=a&other=1"] {
            let refused = parse::<Order>(text.as_bytes()).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidRequest, "{text}");
        }
    }
}
