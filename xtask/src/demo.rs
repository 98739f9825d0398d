//! `cargo xtask demo`: the demo from a fresh checkout.

use std::os::unix::process::CommandExt;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{duckdb, exec, interrupt, output};

/// Builds `lavra` and becomes `lavra demo`. The dev profile: from nothing, it is there sooner.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    duckdb::ensure(workspace)?;
    // With the features of the whole workspace, so that `cargo xtask test` compiles nothing twice.
    exec::run_beside_data(workspace.cargo().args(["build", "--workspace", "--bin", "lavra"]))?;
    interrupt::check()?;
    let lavra = workspace.target().join("debug/lavra");
    output::step(&format!("lavra demo {}", args.join(" ")));
    let mut demo = workspace.command(&lavra);
    demo.current_dir(std::env::current_dir()?);
    let error = demo.arg("demo").args(args).exec();
    Err(error).with_context(|| format!("cannot start {}", lavra.display()))
}
