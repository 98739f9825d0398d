//! What a worker is told when it starts.

use std::path::PathBuf;
use std::time::Duration;

use lavra_extract::source::{Mistakes, Source};
use secrecy::SecretString;

const ADS: &str = include_str!("../sources/ads.toml");

#[derive(Clone, Debug)]
pub struct Config {
    /// Where jobs and results are kept.
    pub data: PathBuf,
    /// What callers must send as `x-api-key`; without one only loopback is served.
    pub api_key: Option<SecretString>,
    pub source: Source,
    /// The endpoint of the source that is scraped [default: its first].
    pub endpoint: Option<String>,
    /// `s3://bucket/below` for results, instead of the directory that the worker serves itself.
    pub storage: Option<String>,
    pub timing: Timing,
}

#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A session that is not ready by then is stuck. Less than the orchestrator waits.
    pub session: Duration,
    /// A session that nobody asks about for so long ends by itself.
    pub idle: Duration,
    /// So often a page is asked for before it is given up.
    pub attempts: u32,
    /// The first and the longest wait between two tries.
    pub backoff: (Duration, Duration),
    /// For so long jobs that are over, and their results, are kept.
    pub keep: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            session: Duration::from_secs(150),
            idle: Duration::from_secs(3600),
            attempts: 6,
            backoff: (Duration::from_millis(500), Duration::from_secs(30)),
            keep: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

/// The ad library that is built in. Where it is, `base_url` says.
pub fn ads() -> Result<Source, Mistakes> {
    Source::parse(ADS)
}
