//! `lavra sql`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Sql {
    /// One SELECT.
    pub(crate) query: String,
    /// How many rows at most.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
}
