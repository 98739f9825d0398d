//! Which addresses a task may call.
//!
//! Whoever can create tasks makes this process send requests. Where the interface is open to
//! others than this machine, internal addresses are refused, and refused after the name
//! was resolved, on the very addresses that are connected to.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use lavra_db::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{ClientBuilder, Url, redirect};

use crate::handler::Failure;

const MAX_REDIRECTS: usize = 5;
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// A client's beginning: who we are, and that only public addresses are called unless
/// `private_allowed`.
pub fn client(private_allowed: bool) -> ClientBuilder {
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(lavra_db::tls())
        .user_agent(concat!("lavra/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(10));
    if private_allowed {
        return builder.redirect(redirect::Policy::limited(MAX_REDIRECTS));
    }
    builder.dns_resolver(PublicOnly).redirect(redirect::Policy::custom(|attempt| match refusal_of(
        attempt.url(),
    ) {
        Some(text) => attempt.error(text),
        None if attempt.previous().len() > MAX_REDIRECTS => attempt.error("too many redirects"),
        None => attempt.follow(),
    }))
}

/// Why a URL may not be called, where it names an internal address itself.
pub fn refusal_of(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse().ok()?;
    (!is_public(address)).then(|| refusal(&address))
}

/// Whether a URL leads to an internal address, by itself or by what its name is resolved to here.
pub async fn is_internal(url: &Url) -> bool {
    if refusal_of(url).is_some() {
        return true;
    }
    let Some(name) = url.host_str() else { return false };
    match tokio::net::lookup_host((name, 0)).await {
        Ok(mut found) => found.any(|address| !is_public(address.ip())),
        Err(_) => false,
    }
}

/// What a request that got no answer failed with. The URL may carry a credential and is not
/// repeated: the innermost cause says what happened.
pub fn trouble(error: &reqwest::Error) -> Failure {
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    if error.is_timeout() {
        text = "no answer in time".into();
    }
    if error.is_redirect() || text.contains("internal address") {
        return Failure::Permanent(text);
    }
    Failure::retry(text)
}

/// How long a server asks to be left alone, by the header of its answer.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let now = Timestamp::try_from(SystemTime::now()).ok()?;
    pause(headers.get(RETRY_AFTER)?.to_str().ok()?, now)
}

/// What `Retry-After` says, an hour at most: in seconds, or until a date. Zero or a time that has passed is
/// no hint: whoever takes it for "at once" burns all attempts.
pub fn pause(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(text).ok()?;
            Duration::try_from(date.timestamp().duration_since(now)).ok()?
        }
    };
    (!wait.is_zero()).then(|| wait.min(LONGEST_PAUSE))
}

/// Resolves names, and gives back only public addresses.
#[derive(Clone, Copy, Debug)]
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            match found.iter().find(|address| !is_public(address.ip())) {
                Some(address) => Err(refusal(&address.ip()).into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

fn refusal(address: &IpAddr) -> String {
    format!("{address} is an internal address, which tasks may not call here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_internal_url_is_known_by_its_address_and_by_its_name() {
        for inside in ["http://127.0.0.1:8090/api", "http://[::1]/", "http://localhost:8090/"] {
            assert!(is_internal(&inside.parse().unwrap()).await, "{inside}");
        }
        for other in ["http://8.8.8.8/", "http://[2606:4700::1111]/", "http://a.name.invalid/"] {
            assert!(!is_internal(&other.parse().unwrap()).await, "{other}");
        }
    }
}
