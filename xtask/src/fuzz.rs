//! `cargo xtask fuzz`: what reads other people's bytes, on bytes that nobody would write. For as long as
//! it is told to; a failure prints the smallest input that still fails.

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{duckdb, exec, output};

/// Unless told otherwise, in seconds.
const LONG: u64 = 600;
/// In `cargo xtask test`.
pub(crate) const SHORT: u64 = 30;

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    fuzz(workspace, seconds(args)?)
}

/// The array splitter of the writer against serde_json.
pub(crate) fn fuzz(workspace: &Workspace, seconds: u64) -> Result<()> {
    duckdb::ensure(workspace)?;
    output::step(&format!("fuzz: the writer's splitter against serde_json, {seconds} s"));
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--quiet", "--package", "lavra-writer", "--test", "it", "splitting::fuzz"]);
    cargo.args(["--", "--ignored", "--nocapture"]).env("LAVRA_FUZZ_SECONDS", seconds.to_string());
    exec::run(&mut cargo)
}

fn seconds(args: &[String]) -> Result<u64> {
    match args {
        [] => Ok(LONG),
        [flag, count] if flag == "--seconds" => count.parse().context("--seconds wants a number"),
        other => bail!("`fuzz` takes `--seconds N`, not `{}`", other.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_unless_told_otherwise() {
        assert_eq!(seconds(&[]).unwrap(), 600);
        assert_eq!(seconds(&["--seconds".into(), "30".into()]).unwrap(), 30);
        assert!(seconds(&["30".into()]).is_err());
    }
}
