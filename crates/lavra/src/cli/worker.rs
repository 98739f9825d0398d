//! `lavra worker`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Where to listen [default: 127.0.0.1:8100]; beyond this machine only with a key, in
    /// LAVRA_WORKER_API_KEY.
    #[arg(long, value_name = "HOST:PORT", env = "LAVRA_WORKER_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,
    /// The directory of its jobs and results [default: lavra-worker].
    #[arg(long, value_name = "DIR", env = "LAVRA_WORKER_DATA", hide_env_values = true)]
    pub(crate) data: Option<PathBuf>,
    /// What is scraped: ads, or a source file of your own [default: ads].
    #[arg(long, value_name = "FILE", env = "LAVRA_WORKER_SOURCE", hide_env_values = true)]
    pub(crate) source: Option<String>,
    /// Where the source is.
    #[arg(long, value_name = "URL", env = "LAVRA_WORKER_BASE_URL", hide_env_values = true)]
    pub(crate) base_url: Option<String>,
    /// Which endpoint of the source is scraped [default: its first].
    #[arg(long, value_name = "NAME", env = "LAVRA_WORKER_ENDPOINT", hide_env_values = true)]
    pub(crate) endpoint: Option<String>,
    /// s3://bucket/below for results, instead of being served from the data directory.
    #[arg(long, value_name = "PLACE", env = "LAVRA_WORKER_STORAGE", hide_env_values = true)]
    pub(crate) storage: Option<String>,
}
