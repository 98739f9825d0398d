//! Which addresses a task may call.
//!
//! Whoever can create tasks makes this process send requests. Where the interface is open to
//! others than this machine, addresses of the inside are refused, and refused after the name
//! was resolved, on the very addresses that are connected to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
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

/// Why a URL may not be called, where it names an address of the inside itself.
pub fn refusal_of(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse().ok()?;
    is_private(address).then(|| refusal(&address))
}

/// Whether a URL leads to an address of the inside, by itself or by what its name is resolved to here.
pub async fn is_of_the_inside(url: &Url) -> bool {
    if refusal_of(url).is_some() {
        return true;
    }
    let Some(name) = url.host_str() else { return false };
    match tokio::net::lookup_host((name, 0)).await {
        Ok(mut found) => found.any(|address| is_private(address.ip())),
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
    if error.is_redirect() || text.contains("address of the inside") {
        return Failure::Permanent(text);
    }
    Failure::retry(text)
}

/// How long a server asks to be left alone, an hour at most: in seconds, or until a date. Zero or a
/// time that has passed is no hint.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(text).ok()?;
            let now = Timestamp::try_from(SystemTime::now()).ok()?;
            Duration::try_from(date.timestamp().duration_since(now)).ok()?
        }
    };
    Some(wait).filter(|wait| !wait.is_zero()).map(|wait| wait.min(LONGEST_PAUSE))
}

/// Resolves names, and gives back only public addresses.
#[derive(Clone, Copy, Debug)]
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            match found.iter().find(|address| is_private(address.ip())) {
                Some(address) => Err(refusal(&address.ip()).into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

fn refusal(address: &IpAddr) -> String {
    format!("{address} is an address of the inside, which tasks may not call here")
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => private_v4(v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => private_v4(v4),
            None => {
                let first = v6.segments()[0];
                v6.is_loopback()
                    || v6.is_unspecified()
                    || v6.is_multicast()
                    || (first & 0xfe00) == 0xfc00
                    || (first & 0xffc0) == 0xfe80
                    || first == 0x2002
                    || v6.segments()[..2] == [0x64, 0xff9b]
            }
        },
    }
}

fn private_v4(v4: Ipv4Addr) -> bool {
    let [a, b, ..] = v4.octets();
    v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_unspecified()
        || v4.is_broadcast()
        || v4.is_multicast()
        || v4.is_documentation()
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (b == 18 || b == 19))
        || a >= 240
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_url_of_the_inside_is_known_by_its_address_and_by_its_name() {
        for inside in ["http://127.0.0.1:8090/api", "http://[::1]/", "http://localhost:8090/"] {
            assert!(is_of_the_inside(&inside.parse().unwrap()).await, "{inside}");
        }
        for other in ["http://8.8.8.8/", "http://[2606:4700::1111]/", "http://a.name.invalid/"] {
            assert!(!is_of_the_inside(&other.parse().unwrap()).await, "{other}");
        }
    }

    #[test]
    fn addresses_of_the_inside_are_known_in_all_their_forms() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fc00::1",
            "fe80::1",
            "64:ff9b::7f00:1",
            "255.255.255.255",
        ] {
            assert!(is_private(text.parse().unwrap()), "{text} counted as public");
        }
        for text in ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"] {
            assert!(!is_private(text.parse().unwrap()), "{text} counted as private");
        }
    }
}
