//! `cargo xtask check`: everything that can be judged without running Lavra. Quick judgements first.

use anyhow::{Context, Result};

use crate::tools::{self, Tool};
use crate::workspace::Workspace;
use crate::{documents, duckdb, exec, output};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let cargo = |args: &[&str]| exec::run(workspace.cargo().args(args));
    cargo(&["fmt", "--all", "--check"]).context("run `cargo fmt --all`")?;
    cargo(&["fmt", "--manifest-path", "bench/Cargo.toml", "--all", "--check"])
        .context("run `cargo fmt --manifest-path bench/Cargo.toml --all`")?;

    output::step("the links of the documents");
    documents::check_links(workspace)?;

    tools::ensure(workspace, Tool::Machete)?;
    cargo(&["machete"]).context("remove the dependencies that are not used")?;
    tools::ensure(workspace, Tool::Deny)?;
    // Advisories are looked at before a release: their database is not a package of the registry.
    cargo(&[
        "deny",
        "--workspace",
        "--all-features",
        "--log-level",
        "error",
        "check",
        "bans",
        "licenses",
        "sources",
    ])
    .context("see deny.toml for the rules and their reasons")?;

    duckdb::ensure(workspace)?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    exec::run(
        workspace
            .cargo()
            .args(["doc", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}
