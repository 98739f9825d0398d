//! The headers that requests may carry, read once.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use lavra_tasks::model::EventId;
use lavra_tasks::store::Cursor;
use utoipa::IntoParams;

use crate::problem::{Code, Problem};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What makes a request safe to repeat.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct KeyHeader {
    /// 1 to 255 printable characters, chosen by the caller: the same request with the same key is
    /// carried out once, and answered the same way.
    #[param(
        rename = "Idempotency-Key",
        pattern = "^[!-~]([ -~]{0,253}[!-~])?$",
        example = "order-4711"
    )]
    idempotency_key: Option<String>,
}

/// The same of a batch, each of whose parts has a key made of it.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct ShorterKeyHeader {
    /// 1 to 249 printable characters, chosen by the caller: the same request with the same key is
    /// carried out once, and answered the same way.
    #[param(
        rename = "Idempotency-Key",
        pattern = "^[!-~]([ -~]{0,247}[!-~])?$",
        example = "order-4711"
    )]
    idempotency_key: Option<String>,
}

/// What guards a change.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct VersionHeader {
    /// Only if the task is still at this version, as `ETag` gave it.
    #[param(rename = "If-Match", pattern = r#"^(\*|"\d{1,9}"|\d{1,9})$"#, example = "\"3\"")]
    if_match: Option<String>,
}

fn bad(detail: impl Into<String>) -> Problem {
    Problem::new(Code::BadHeader, detail)
}

/// The one value of a header, if it is there; it may be empty.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad(format!("{name} may stand only once")));
    }
    let value = value.to_str().map_err(|_| bad(format!("{name} is not plain text")))?;
    Ok(Some(value.trim()))
}

/// The version that `If-Match` names: `"3"` or `3`; `*` and its absence name none.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<i32>, Problem> {
    let Some(value) = text(headers, &header::IF_MATCH)? else { return Ok(None) };
    if value == "*" {
        return Ok(None);
    }
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let version = quoted.unwrap_or(value).parse().ok();
    version.map(Some).ok_or_else(|| {
        bad(format!("If-Match is one version, as ETag gives it (\"3\"), not {value:?}"))
    })
}

pub(crate) fn idempotency_key(
    headers: &HeaderMap,
    longest: usize,
) -> Result<Option<String>, Problem> {
    let Some(key) = text(headers, &IDEMPOTENCY_KEY)? else { return Ok(None) };
    let printable = key.chars().all(|letter| letter == ' ' || letter.is_ascii_graphic());
    if !printable || !(1..=longest).contains(&key.len()) {
        let rule = format!("Idempotency-Key must be 1 to {longest} printable characters");
        return Err(Problem::invalid(rule));
    }
    Ok(Some(key.to_owned()))
}

/// A browser that has seen no id yet sends none, or an empty one.
fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    Ok(text(headers, &LAST_EVENT_ID)?.filter(|value| !value.is_empty()))
}

/// The version after which a reader of one task's events goes on.
pub(crate) fn last_version(headers: &HeaderMap) -> Result<Option<i32>, Problem> {
    let Some(value) = last_event_id(headers)? else { return Ok(None) };
    let version = value.parse().map(Some);
    version.map_err(|_| bad(format!("Last-Event-ID is a version (3), not {value:?}")))
}

/// Where a reader of all events goes on.
pub(crate) fn last_cursor(headers: &HeaderMap) -> Result<Option<Cursor>, Problem> {
    let Some(value) = last_event_id(headers)? else { return Ok(None) };
    let parts = value.split_once(':');
    let cursor = parts.and_then(|(transaction, event)| {
        let transaction = transaction.parse().ok().filter(|number| *number >= 0)?;
        Some(Cursor { transaction, event: EventId(event.parse().ok()?) })
    });
    cursor.map(Some).ok_or_else(|| {
        bad(format!("Last-Event-ID is TRANSACTION:EVENT, as the stream gave it, not {value:?}"))
    })
}

/// The tag of a version.
pub(crate) fn etag(version: i32) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_bytes(value.as_bytes()).unwrap())])
    }

    #[test]
    fn a_version_comes_with_or_without_quotes() {
        for (value, version) in [("3", Some(3)), ("\"3\"", Some(3)), ("*", None), (" 7 ", Some(7))]
        {
            assert_eq!(if_match(&with(header::IF_MATCH, value)).unwrap(), version, "{value}");
        }
        for value in ["", "\"", "\"3", "W/\"3\"", "\"3\", \"4\"", "x", "99999999999", "é"] {
            let refused = if_match(&with(header::IF_MATCH, value)).unwrap_err();
            assert_eq!(refused.code(), Code::BadHeader, "{value}");
        }
    }

    #[test]
    fn a_cursor_is_what_the_stream_gave() {
        let event = "0193a1b2-0000-7000-8000-000000000001";
        let cursor = last_cursor(&with(LAST_EVENT_ID, &format!("42:{event}"))).unwrap().unwrap();
        assert_eq!((cursor.transaction, cursor.event.to_string()), (42, event.to_owned()));
        for value in ["42", ":", "x:y", "-1:0193a1b2-0000-7000-8000-000000000001", "42:"] {
            let refused = last_cursor(&with(LAST_EVENT_ID, value)).unwrap_err();
            assert_eq!(refused.code(), Code::BadHeader, "{value}");
        }
        assert!(last_cursor(&with(LAST_EVENT_ID, "")).unwrap().is_none());
    }

    #[test]
    fn a_header_that_stands_twice_is_refused() {
        let mut headers = with(header::IF_MATCH, "1");
        headers.append(header::IF_MATCH, HeaderValue::from_static("2"));
        assert_eq!(if_match(&headers).unwrap_err().code(), Code::BadHeader);
    }
}
