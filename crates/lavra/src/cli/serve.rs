//! `lavra serve` and `lavra runner`.

use clap::Args;

use crate::work::Part;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen [default: 127.0.0.1:8080]; beyond this machine only with an admin key, as `lavra
    /// key create` makes them.
    #[arg(long, value_name = "HOST:PORT", env = "LAVRA_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,

    /// A name, besides localhost, under which it is reached; any other is refused. Repeat it for more
    /// (in the variable, commas) [default: `hosts` of the settings].
    #[arg(
        long = "host",
        value_name = "NAME",
        env = "LAVRA_HOSTS",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) hosts: Vec<String>,

    /// Let tasks call internal addresses (loopback, private networks), also where callers need
    /// keys.
    #[arg(long, env = "LAVRA_ALLOW_PRIVATE", hide_env_values = true)]
    pub(crate) allow_private: bool,

    /// Only serve; let other processes run the tasks.
    #[arg(long)]
    pub(crate) no_runner: bool,

    /// Beside serving, run only this part of the work, and leave the rest to other processes; repeat it
    /// for more.
    #[arg(long, value_name = "PART", conflicts_with = "no_runner")]
    pub(crate) only: Vec<Part>,

    /// Also know the type `count`, which counts slowly: for demonstrations and tests.
    #[arg(long, env = "LAVRA_DEMO_TYPES", hide_env_values = true)]
    pub(crate) demo_types: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunnerArgs {
    /// Run only this part of the work, and leave the rest to other processes; repeat it for more.
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<Part>,

    /// Where to tell Prometheus what it counts, and whether it lives; no key is asked for [default:
    /// nowhere].
    #[arg(long, value_name = "HOST:PORT", env = "LAVRA_RUNNER_METRICS", hide_env_values = true)]
    pub(crate) metrics: Option<String>,

    /// Let tasks call internal addresses (loopback, private networks).
    #[arg(long, env = "LAVRA_ALLOW_PRIVATE", hide_env_values = true)]
    pub(crate) allow_private: bool,

    /// Also know the type `count`, which counts slowly: for demonstrations and tests.
    #[arg(long, env = "LAVRA_DEMO_TYPES", hide_env_values = true)]
    pub(crate) demo_types: bool,
}
