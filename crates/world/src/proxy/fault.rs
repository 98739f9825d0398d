//! How a proxy fails when it is told to.

use serde::{Deserialize, Serialize};

/// A fault, and after how many connections of the proxy's life it begins.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyFault {
    pub kind: ProxyFaultKind,
    #[serde(default)]
    pub after: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyFaultKind {
    /// Nobody listens. At once, whatever `after` says.
    Refuse,
    /// Connections are reset as soon as they are made.
    Reset,
    /// No credentials are good enough: 407, or the refusal of SOCKS5.
    Deny,
    /// Accepted and never answered.
    Hang,
    /// The way back breaks off after so many bytes.
    Cut { bytes: u64 },
    /// Each piece of the way back waits so long.
    Slow { millis: u64 },
}

impl ProxyFault {
    /// From the first connection on.
    pub fn now(kind: ProxyFaultKind) -> Self {
        Self { kind, after: 0 }
    }
}
