//! What the API would say if nothing failed, and what the faults make of it.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderValue, RETRY_AFTER};
use jiff::Timestamp;

use crate::answer::{Body, Ending};
use crate::api::{self, Refusal, Shape};
use crate::dice::Dice;
use crate::endpoint::Empty;
use crate::faults::{self, RetryAfter};
use crate::headers;

/// An answer without its circumstances.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) ending: Ending,
}

impl Reply {
    fn new(status: u16, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self { status, headers, body: Body::Bytes(body.into()), ending: Ending::Whole }
    }

    /// JSON of the API, in chunks.
    pub(crate) fn json(status: u16, body: Vec<u8>) -> Self {
        Self::new(status, headers::of_api(status), body)
    }

    pub(crate) fn zero_length() -> Self {
        let mut headers = headers::of_api(200);
        headers::with_length(&mut headers, 0);
        Self::new(200, headers, Bytes::new())
    }

    pub(crate) fn error(
        status: u16,
        shape: Shape,
        message: &str,
        path: &str,
        now: Timestamp,
    ) -> Self {
        Self::json(status, api::error_body(shape, status, message, path, now))
    }

    pub(crate) fn refusal(refusal: &Refusal, path: &str, now: Timestamp) -> Self {
        match refusal {
            Refusal::Error { status, shape, message } => {
                Self::error(*status, *shape, message, path, now)
            }
            Refusal::Silent => Self::zero_length(),
        }
    }

    pub(crate) fn empty(empty: Empty, path: &str, now: Timestamp) -> Self {
        match empty {
            Empty::NoContent => Self::new(204, headers::of_api(204), Bytes::new()),
            Empty::NotFound => {
                let message = "Nenhum instrumento de Cobrança encontrado.";
                Self::error(404, Shape::Spring, message, path, now)
            }
            Empty::ZeroLength => Self::zero_length(),
        }
    }

    fn html(status: u16, page: String) -> Self {
        Self::new(status, headers::of_gateway(page.len()), page)
    }

    pub(crate) fn too_many(dice: &mut Dice) -> Self {
        Self::html(429, faults::too_many_page(dice.roll()))
    }

    pub(crate) fn retry_after(hint: &RetryAfter, dice: &mut Dice, now: Timestamp) -> Self {
        let mut reply = Self::too_many(dice);
        let value = if hint.as_date {
            let seconds = i64::try_from(hint.seconds).unwrap_or(i64::MAX);
            let then = now.as_second().saturating_add(seconds);
            let then = Timestamp::from_second(then).unwrap_or(now);
            let text = then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("0"))
        } else {
            HeaderValue::from(hint.seconds)
        };
        reply.headers.insert(RETRY_AFTER, value);
        reply
    }

    pub(crate) fn server_error(dice: &mut Dice, path: &str, now: Timestamp) -> Self {
        let message = dice.pick(&[
            "Erro na comunicação com o banco de dados",
            "Failed to obtain JDBC Connection",
            "Erro ao processar a consulta.",
        ]);
        Self::error(500, Shape::Spring, message, path, now)
    }

    pub(crate) fn gateway(status: u16) -> Self {
        Self::html(status, faults::gateway_page(status))
    }

    pub(crate) fn firewall(dice: &mut Dice) -> Self {
        Self::html(200, faults::waf_page(dice.roll()))
    }

    pub(crate) fn huge(bytes: u64) -> Self {
        Self { body: Body::Filler(bytes), ..Self::json(200, Vec::new()) }
    }

    pub(crate) fn failed(ending: Ending) -> Self {
        Self { ending, ..Self::new(0, HeaderMap::new(), Bytes::new()) }
    }

    /// The same without its second half; what has no body is reset instead.
    pub(crate) fn cut(mut self, with_length: bool) -> Self {
        if let Body::Bytes(bytes) = &mut self.body {
            if bytes.is_empty() {
                return Self::failed(Ending::Reset);
            }
            if with_length {
                headers::with_length(&mut self.headers, bytes.len() as u64);
            }
            bytes.truncate(bytes.len() / 2);
        }
        self.ending = Ending::Cut;
        self
    }

    /// The same without its second half, as if that were all.
    pub(crate) fn wrong(mut self) -> Self {
        if let Body::Bytes(bytes) = &mut self.body {
            bytes.truncate(bytes.len() / 2);
        }
        self
    }
}
