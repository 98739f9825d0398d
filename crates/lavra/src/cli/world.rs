//! `lavra world`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct World {
    /// Where the PNCP API listens.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8090")]
    pub(crate) listen: String,
    /// Where doubles of workers and a writer listen as well; their API keys are worker-key and
    /// writer-key.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) fleet: Option<String>,
    /// How many doubles of workers there are.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) fleet_workers: usize,
    /// What goes wrong with them: all, or JSON as `PUT /_fleet/faults` of the world takes it.
    #[arg(long, value_name = "FAULTS", requires = "fleet")]
    pub(crate) fleet_faults: Option<String>,
    /// Where an ad library listens as well, for `lavra worker` to scrape.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) ads: Option<String>,
    /// Ads of one day, media type and language, on average.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) ads_per_day: u64,
    /// How many forward proxies there are, HTTP and SOCKS5 alike; the user is `user`, the password
    /// `proxy-password`.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "ads")]
    pub(crate) proxies: u16,
    /// The port of the first proxy; the others follow [default: any that are free].
    #[arg(long, value_name = "PORT", requires = "proxies")]
    pub(crate) proxy_port: Option<u16>,
    #[command(flatten)]
    pub(crate) options: lavra_world::WorldArgs,
}
