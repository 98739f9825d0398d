//! `lavra simulate`.

use clap::Args;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is there or not")]
pub(crate) struct Simulate {
    /// The same seed is the same simulation.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many seeds, from --seed on.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seeds: u64,
    /// How many workers the fleet has.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) workers: usize,
    /// How many missions it runs.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) missions: usize,
    /// How many proxies it has [default: a quarter more than workers].
    #[arg(long, value_name = "N")]
    pub(crate) proxies: Option<usize>,
    /// How many orchestrators share the workers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) orchestrators: usize,
    /// What goes wrong outside: none, all, or JSON as `PUT /_fleet/faults` of the world takes it.
    #[arg(long, default_value = "all")]
    pub(crate) faults: String,
    /// Orchestrators are killed and frozen, and people cancel and retry.
    #[arg(long)]
    pub(crate) chaos: bool,
    /// Each seed has a number of workers and of orchestrators of its own, from 1 up to these.
    #[arg(long)]
    pub(crate) vary: bool,
    /// Steps are written whoever holds the rows: for the test that a simulation finds it.
    #[arg(long, hide = true)]
    pub(crate) break_the_guard: bool,
    /// Virtual days after which it has gone on for too long.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) days: u64,
    /// Print the whole log as well.
    #[arg(long)]
    pub(crate) timeline: bool,
}
