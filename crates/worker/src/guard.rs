//! Who may speak to a worker: whoever has its key, or, where it has none, programs of this machine (and
//! no web page in its browser, which its Host or Origin gives away).

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::refusal::Refusal;

const MINUTE: Duration = Duration::from_secs(60);
/// Wrong keys in a minute, after which none is looked at for the rest of it.
const MOST_WRONG: u32 = 100;
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

#[derive(Debug)]
pub(crate) struct Guard {
    /// The key's hash: all that is compared has the same length.
    key: Option<[u8; 32]>,
    wrong: Mutex<(Instant, u32)>,
}

impl Guard {
    pub(crate) fn new(key: Option<&SecretString>) -> Self {
        let key = key.map(|key| Sha256::digest(key.expose_secret().as_bytes()).into());
        Self { key, wrong: Mutex::new((Instant::now(), 0)) }
    }

    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn admit(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(key) = &self.key else { return local(headers) };
        let given = headers.get("x-api-key").map(|value| Sha256::digest(value.as_bytes()));
        if given.is_some_and(|given| bool::from(given.as_slice().ct_eq(key))) {
            return Ok(());
        }
        let mut wrong = self.wrong.lock();
        if wrong.0.elapsed() > MINUTE {
            *wrong = (Instant::now(), 0);
        }
        wrong.1 = wrong.1.saturating_add(1);
        if wrong.1 > MOST_WRONG { Err(Refusal::TooMany) } else { Err(Refusal::WrongKey) }
    }
}

fn local(headers: &HeaderMap) -> Result<(), Refusal> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_local = LOOPBACK.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_local && !headers.contains_key(header::ORIGIN) { Ok(()) } else { Err(Refusal::Foreign) }
}

pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.admit(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_the_key_opens_and_guessing_is_slowed_down() {
        let guard = Guard::new(Some(&"right".to_owned().into()));
        assert_eq!(guard.admit(&headers(&[("x-api-key", "right")])), Ok(()));
        for wrong in [&[][..], &[("x-api-key", "")], &[("x-api-key", "righ")]] {
            assert_eq!(guard.admit(&headers(wrong)), Err(Refusal::WrongKey));
        }
        for _ in 0..MOST_WRONG {
            let _wrong = guard.admit(&headers(&[]));
        }
        assert_eq!(guard.admit(&headers(&[])), Err(Refusal::TooMany));
        assert_eq!(guard.admit(&headers(&[("x-api-key", "right")])), Ok(()), "others go on");
    }

    #[test]
    fn without_a_key_only_this_machine_s_programs_are_answered() {
        let guard = Guard::new(None);
        for host in ["localhost:8100", "127.0.0.1", "[::1]:8100"] {
            assert_eq!(guard.admit(&headers(&[("host", host)])), Ok(()), "{host}");
        }
        for foreign in [
            &[("host", "evil.example")][..],
            &[],
            &[("host", "localhost"), ("origin", "http://evil.example")],
        ] {
            assert_eq!(guard.admit(&headers(foreign)), Err(Refusal::Foreign));
        }
    }
}
