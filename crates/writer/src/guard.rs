//! Who may speak to a writer: whoever has its key, or, where it has none, programs of this machine (and
//! no web page in its browser, which its Host or Origin gives away).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::web::problem;

const API_KEY: &str = "x-api-key";
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

#[derive(Debug)]
pub(crate) struct Guard {
    /// The key's hash: all that is compared has the same length.
    key: Option<[u8; 32]>,
}

/// Why someone is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stranger {
    WrongKey,
    Foreign,
}

impl Guard {
    pub(crate) fn new(key: Option<&SecretString>) -> Self {
        Self { key: key.map(|key| Sha256::digest(key.expose_secret().as_bytes()).into()) }
    }

    fn admit(&self, headers: &HeaderMap) -> Result<(), Stranger> {
        let Some(key) = &self.key else { return local(headers) };
        let given = headers.get(API_KEY).map(|value| Sha256::digest(value.as_bytes()));
        let is_right = given.is_some_and(|given| bool::from(given.as_slice().ct_eq(key)));
        if is_right { Ok(()) } else { Err(Stranger::WrongKey) }
    }
}

fn local(headers: &HeaderMap) -> Result<(), Stranger> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_local = LOOPBACK.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_local && !headers.contains_key(header::ORIGIN) { Ok(()) } else { Err(Stranger::Foreign) }
}

pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.admit(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(Stranger::WrongKey) => {
            problem(StatusCode::UNAUTHORIZED, "the header x-api-key is missing or wrong")
        }
        Err(Stranger::Foreign) => {
            let text = "without an API key only programs of this machine are answered: set \
                        LAVRA_WRITER_API_KEY";
            problem(StatusCode::FORBIDDEN, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn without_a_key_only_this_machine_s_programs_are_answered() {
        let guard = Guard::new(None);
        for host in ["localhost:8091", "127.0.0.1", "[::1]:8091"] {
            assert_eq!(guard.admit(&headers(&[("host", host)])), Ok(()), "{host}");
        }
        for foreign in [
            &[("host", "evil.example")][..],
            &[],
            &[("host", "localhost"), ("origin", "http://evil.example")],
        ] {
            assert_eq!(guard.admit(&headers(foreign)), Err(Stranger::Foreign));
        }
    }

    #[test]
    fn with_a_key_only_the_key_opens() {
        let guard = Guard::new(Some(&"right".to_owned().into()));
        let from_afar = [("host", "writer.example"), ("x-api-key", "right")];
        assert_eq!(guard.admit(&headers(&from_afar)), Ok(()));
        for wrong in [&[("host", "localhost")][..], &[("x-api-key", "righ")]] {
            assert_eq!(guard.admit(&headers(wrong)), Err(Stranger::WrongKey));
        }
    }
}
