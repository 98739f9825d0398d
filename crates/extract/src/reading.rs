//! What an answer is: data, nothing, past the end, a reason to try again, or a refusal.
//!
//! A failure is never taken for "empty": that is how others lost months without a word. So HTML
//! with status 200, a body that ends early, an empty body where there should be one, and JSON
//! without the list and the total are all reasons to try again.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use lavra_tasks::outbound;

use crate::digest::{Digest, digest};
use crate::source::{Endpoint, Means, Source};

/// What came over the wire, whole.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Why nothing came, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the connection failed: {0}")]
    Connection(String),
    #[error("the body is larger than {} MB (max_body_mb of the source)", .limit >> 20)]
    TooLarge { limit: usize },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    Data(Digest),
    Empty,
    /// The page was there when the total was announced, and is not any more.
    PastEnd,
    Retry(Failure),
    Refused(Failure),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: Kind,
    pub error: String,
    /// When the server wants to be asked again.
    pub wait: Option<Duration>,
}

/// Failures by what they say of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Too many requests.
    Throttled,
    /// The server failed (5xx).
    Server,
    Timeout,
    /// The connection was refused, reset, or ended early.
    Connection,
    /// Not what the source answers: HTML, half of a body, another JSON.
    Garbled,
    /// The request is wrong, or will not be answered.
    Refused,
    TooLarge,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Server => "server",
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Garbled => "garbled",
            Self::Refused => "refused",
            Self::TooLarge => "too_large",
        }
    }
}

const LONGEST_WAIT: Duration = Duration::from_secs(600);
const LONGEST_MESSAGE: usize = 200;

/// Whether the source takes this answer for something else when it has come often enough.
pub fn is_in_doubt(
    answer: &Result<Reply, Trouble>,
    source: &Source,
    endpoint: &Endpoint,
    page: i64,
    now: Timestamp,
) -> bool {
    !matches!(read(answer, source, endpoint, page, u32::MAX, now), Reading::Retry(_))
}

/// Reads the answer to page `page` of a window, whose status has come `earlier` times before.
pub fn read(
    answer: &Result<Reply, Trouble>,
    source: &Source,
    endpoint: &Endpoint,
    page: i64,
    earlier: u32,
    now: Timestamp,
) -> Reading {
    let reply = match answer {
        Ok(reply) => reply,
        Err(trouble) => return troubled(trouble),
    };
    let rules = endpoint.rules.iter().chain(&source.rules);
    let rule = rules.into_iter().find(|rule| rule.fits(reply.status, page, &reply.body));
    let failure = || {
        let kind = match reply.status {
            429 => Kind::Throttled,
            500.. => Kind::Server,
            200..=299 => Kind::Garbled,
            _ => Kind::Refused,
        };
        Failure { kind, error: message(reply), wait: wait(reply, now) }
    };
    let means = match rule {
        Some(rule) if earlier < rule.after => Some(Means::Retry),
        Some(rule) => Some(rule.means),
        None => match reply.status {
            204 => Some(Means::Empty),
            200 => None,
            201..=299 | 408 | 425 | 429 | 500.. => Some(Means::Retry),
            _ => Some(Means::Refused),
        },
    };
    match means {
        None => data(reply, source, endpoint),
        Some(Means::Empty) if page == 1 => Reading::Empty,
        Some(Means::Empty | Means::PastEnd) => Reading::PastEnd,
        Some(Means::Retry) => Reading::Retry(failure()),
        Some(Means::Refused) => Reading::Refused(failure()),
    }
}

fn troubled(trouble: &Trouble) -> Reading {
    let kind = match trouble {
        Trouble::Timeout(_) => Kind::Timeout,
        Trouble::Connection(_) => Kind::Connection,
        Trouble::TooLarge { .. } => Kind::TooLarge,
    };
    let failure = Failure { kind, error: trouble.to_string(), wait: None };
    match trouble {
        Trouble::Timeout(_) | Trouble::Connection(_) => Reading::Retry(failure),
        Trouble::TooLarge { .. } => Reading::Refused(failure),
    }
}

fn data(reply: &Reply, source: &Source, endpoint: &Endpoint) -> Reading {
    let garbled =
        |error: String| Reading::Retry(Failure { kind: Kind::Garbled, error, wait: None });
    if reply.body.iter().all(u8::is_ascii_whitespace) {
        return garbled("status 200 without a body".into());
    }
    match digest(&reply.body, source, endpoint) {
        Err(_) if looks_like_html(&reply.body) => garbled("status 200 with an HTML page".into()),
        Err(error) => garbled(format!("status 200 with a body that is not JSON: {error}")),
        Ok(found) if found.records.is_none() || found.total.is_none_or(|total| total < 0) => {
            garbled("status 200 with JSON that has no list of records or no total".into())
        }
        // Nothing could ever be missing of it.
        Ok(Digest { records: Some(records @ 1..), total: Some(0), .. }) => {
            garbled(format!("status 200 with {records} records and a total of none"))
        }
        Ok(found) => Reading::Data(found),
    }
}

fn looks_like_html(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'<')
}

/// What the server says of itself, in one line.
fn message(reply: &Reply) -> String {
    let status = reply.status;
    if looks_like_html(&reply.body) {
        return format!("status {status} with an HTML page");
    }
    let value: Option<serde_json::Value> = serde_json::from_slice(&reply.body).ok();
    let told = value.as_ref().and_then(|value| {
        ["message", "detail", "error"].iter().find_map(|name| value.get(name)?.as_str())
    });
    match told {
        Some(text) => {
            let text: String =
                text.chars().filter(|c| !c.is_control()).take(LONGEST_MESSAGE).collect();
            format!("status {status}: {text}")
        }
        None => format!("status {status}"),
    }
}

/// What `Retry-After` says.
fn wait(reply: &Reply, now: Timestamp) -> Option<Duration> {
    let value = reply.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    outbound::pause(&value.1, now).map(|wait| wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, page: i64, earlier: u32, answer: &Result<Reply, Trouble>) -> Reading {
        let source = Source::built_in("pncp").unwrap().unwrap();
        let endpoint = source.series(name).unwrap().endpoint.clone();
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        read(answer, &source, &endpoint, page, earlier, now)
    }

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, headers: Vec::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn kind(reading: Reading) -> (&'static str, Option<Kind>) {
        match reading {
            Reading::Data(_) => ("data", None),
            Reading::Empty => ("empty", None),
            Reading::PastEnd => ("past the end", None),
            Reading::Retry(failure) => ("retry", Some(failure.kind)),
            Reading::Refused(failure) => ("refused", Some(failure.kind)),
        }
    }

    /// The table of what the portal was seen to answer, line by line.
    #[test]
    fn each_answer_of_the_portal_is_taken_for_what_it_is() {
        let page = r#"{"data":[{}],"totalRegistros":1,"totalPaginas":1}"#;
        let lying = r#"{"data":[{}],"totalRegistros":0,"totalPaginas":0}"#;
        let html = "<html><body>Limite de Requisições Excedido</body></html>";
        let none = r#"{"status":404,"message":"Nenhum instrumento de Cobrança encontrado."}"#;
        let own = r#"{"message":"For input string: \"\""}"#;
        let (contratos, pca) = ("contratos_publicacao", "pca_atualizacao");
        let cobranca = "instrumentoscobranca_inclusao";
        let rows = [
            (contratos, 1, 0, 200, page, ("data", None)),
            (pca, 1, 0, 200, "", ("empty", None)),
            (contratos, 1, 0, 200, "", ("retry", Some(Kind::Garbled))),
            (contratos, 1, 0, 200, html, ("retry", Some(Kind::Garbled))),
            (contratos, 1, 0, 200, r#"{"data":[{"#, ("retry", Some(Kind::Garbled))),
            (contratos, 1, 0, 200, r#"{"message":"ok"}"#, ("retry", Some(Kind::Garbled))),
            (contratos, 1, 0, 200, lying, ("retry", Some(Kind::Garbled))),
            (contratos, 1, 0, 204, "", ("empty", None)),
            (contratos, 2, 0, 204, "", ("past the end", None)),
            (contratos, 1, 0, 400, "{}", ("refused", Some(Kind::Refused))),
            (contratos, 2, 0, 400, "{}", ("past the end", None)),
            (contratos, 2, 0, 400, own, ("retry", Some(Kind::Refused))),
            (cobranca, 1, 0, 404, none, ("empty", None)),
            (cobranca, 1, 0, 404, "{}", ("refused", Some(Kind::Refused))),
            (contratos, 1, 0, 404, none, ("refused", Some(Kind::Refused))),
            (contratos, 1, 0, 422, "{}", ("retry", Some(Kind::Refused))),
            (contratos, 1, 1, 422, "{}", ("refused", Some(Kind::Refused))),
            (contratos, 1, 0, 429, html, ("retry", Some(Kind::Throttled))),
            (contratos, 1, 0, 500, "{}", ("retry", Some(Kind::Server))),
            (contratos, 1, 9, 502, html, ("retry", Some(Kind::Server))),
            (contratos, 1, 0, 503, "", ("retry", Some(Kind::Server))),
            (contratos, 1, 0, 504, "", ("retry", Some(Kind::Server))),
            (contratos, 1, 0, 302, "", ("refused", Some(Kind::Refused))),
        ];
        for (name, page, earlier, status, body, expected) in rows {
            let found = kind(of(name, page, earlier, &Ok(reply(status, body))));
            assert_eq!(found, expected, "{name} page {page}: {status} {body}");
        }
        let timeout = Err(Trouble::Timeout(Duration::from_secs(240)));
        assert_eq!(kind(of(contratos, 1, 0, &timeout)), ("retry", Some(Kind::Timeout)));
        let large = Err(Trouble::TooLarge { limit: 64 << 20 });
        assert_eq!(kind(of(contratos, 1, 0, &large)), ("refused", Some(Kind::TooLarge)));
    }

    #[test]
    fn a_server_s_wish_to_be_asked_later_is_read_and_no_hint_is_none() {
        let wait = |text: &str| {
            let headers = vec![("Retry-After".to_owned(), text.to_owned())];
            let reply = Reply { status: 429, headers, body: Bytes::new() };
            match of("contratos_publicacao", 1, 0, &Ok(reply)) {
                Reading::Retry(failure) => failure.wait,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("Mon, 16 Nov 2026 10:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(wait("99999"), Some(LONGEST_WAIT));
        for none in ["0", "-3", "soon", "", "Mon, 16 Nov 2026 09:59:00 GMT"] {
            assert_eq!(wait(none), None, "{none}");
        }
    }

    #[test]
    fn an_error_says_what_the_server_said_in_one_line() {
        let body = "{\"message\":\"Data Inicial\\ninválida\"}";
        let Reading::Refused(failure) = of("contratos_publicacao", 1, 1, &Ok(reply(422, body)))
        else {
            panic!("not refused")
        };
        assert_eq!(failure.error, "status 422: Data Inicialinválida");
    }
}
