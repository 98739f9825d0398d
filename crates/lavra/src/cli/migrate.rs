//! `lavra migrate`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Print the PostgreSQL schema as a script instead of applying it.
    #[arg(long)]
    pub(crate) print: bool,
}
