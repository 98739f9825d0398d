//! Which hosts may be asked.
//!
//! Whoever may order a job makes this process send requests. So a host is judged by what is written,
//! by every address that its name has, and at the moment of connecting: the addresses that were judged
//! are the ones that are connected to, and one bad one spoils them all.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use lavra_db::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::config::{Access, Config};

/// Who knows the addresses of names.
#[async_trait]
pub trait Names: Send + Sync + Debug {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The names of this machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect())
    }
}

/// Why a URL may not be asked, as far as it can be seen from what is written.
pub(super) fn refusal(access: &Access, url: &Url) -> Option<String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Some("is http or https".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Some("may hold no user and password".into());
    }
    let Some(host) = url.host() else { return Some("has no host".into()) };
    let is_listed = access.hosts.is_empty()
        || access
            .hosts
            .iter()
            .any(|pattern| matches_host(pattern, &host, url.port_or_known_default()));
    if !is_listed {
        return Some("the host is not among those that may be asked (allow_hosts)".into());
    }
    let address = match host {
        Host::Domain(_) => return None,
        Host::Ipv4(address) => IpAddr::V4(address),
        Host::Ipv6(address) => IpAddr::V6(address),
    };
    (!may_connect(access, address)).then(|| INSIDE.to_owned())
}

const INSIDE: &str = "the host is an internal address, which may not be asked (allow_private)";

fn matches_host(pattern: &str, host: &Host<&str>, port: Option<u16>) -> bool {
    let text = host.to_string();
    let (pattern, wanted) = match pattern.rsplit_once(':') {
        Some((name, port)) if !name.ends_with(':') && port.parse::<u16>().is_ok() => {
            (name, port.parse().ok())
        }
        _ => (pattern, None),
    };
    let is_port = wanted.is_none() || wanted == port;
    let is_name = match pattern.strip_prefix("*.") {
        Some(parent) => text
            .to_ascii_lowercase()
            .strip_suffix(&parent.to_ascii_lowercase())
            .is_some_and(|rest| rest.ends_with('.')),
        None => text.eq_ignore_ascii_case(pattern),
    };
    is_port && is_name
}

fn may_connect(access: &Access, address: IpAddr) -> bool {
    is_public(address) || access.private.iter().any(|network| network.contains(address))
}

/// A name that leads inside.
#[derive(Debug, thiserror::Error)]
#[error("{INSIDE}")]
pub(super) struct Inside;

/// Resolves names for the client, and gives it only what may be connected to.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub(super) config: Arc<Config>,
    pub(super) names: Arc<dyn Names>,
}

impl Resolve for Judge {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { config, names } = self.clone();
        Box::pin(async move {
            let found = names.lookup(name.as_str()).await?;
            if !found.iter().all(|address| may_connect(&config.access, *address)) {
                return Err(Inside.into());
            }
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(pattern: &str, url: &str) -> bool {
        let access = Access { hosts: vec![pattern.to_owned()], ..Access::default() };
        refusal(&access, &url.parse().unwrap()).is_none()
    }

    #[test]
    fn listed_hosts_are_names_ports_and_families() {
        assert!(listed("data.example.com", "https://DATA.example.com/x"));
        assert!(listed("data.example.com:8443", "https://data.example.com:8443/x"));
        assert!(listed("*.example.com", "https://a.b.example.com/x"));
        for (pattern, url) in [
            ("data.example.com", "https://data.example.com.evil.org/"),
            ("data.example.com:8443", "https://data.example.com/"),
            ("*.example.com", "https://example.com/"),
            ("*.example.com", "https://badexample.com/"),
        ] {
            assert!(!listed(pattern, url), "{pattern} {url}");
        }
    }
}
