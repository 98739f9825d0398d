//! `lavra demo`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// End when the work is done, instead of staying up until Ctrl-C: 3 if some of it remains, 1 if
    /// anything is lost or wrong.
    #[arg(long)]
    pub(crate) exit: bool,
}
