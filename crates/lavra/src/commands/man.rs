//! `lavra man DIRECTORY`: a manual page for each command, for those who make packages.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::Exit;

pub(crate) fn run(directory: &Path) -> anyhow::Result<Exit> {
    clap_mangen::generate_to(Cli::command(), directory).with_context(|| {
        format!("cannot write manual pages to {}: is it a directory?", directory.display())
    })?;
    Ok(Exit::Done)
}
