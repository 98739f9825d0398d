//! `cargo xtask test`: every test, with real servers. Documentation tests first, which nextest does not
//! run and which are few: the summary at the end is that of all the others.

use anyhow::Result;

use crate::apt;
use crate::servers::{self, Servers};
use crate::tools::{self, Tool};
use crate::workspace::Workspace;
use crate::{browser, conformance, documents, duckdb, exec, fuzz, package};

pub(crate) fn run(workspace: &Workspace, nextest: &[String]) -> Result<()> {
    apt::ensure(servers::PACKAGES)?;
    apt::ensure(browser::PACKAGES)?;
    duckdb::ensure(workspace)?;
    tools::ensure(workspace, Tool::Nextest)?;
    // With the tests' features, so that nothing is compiled twice: tests run the real `lavra`.
    exec::run(workspace.cargo().args(["build", "--workspace", "--bins", "--tests"]))?;

    let servers = Servers::start(workspace)?;
    if nextest.is_empty() {
        exec::run(
            workspace
                .cargo()
                .args(["test", "--doc", "--workspace", "--quiet"])
                .envs(servers.environment()?),
        )?;
    }
    let mut tests = workspace.cargo();
    tests.args(["nextest", "run"]).args(scope(nextest)).args(nextest).envs(servers.environment()?);
    exec::run(&mut tests)?;
    if nextest.is_empty() {
        conformance::check(workspace)?;
        browser::test(workspace, &[])?;
        documents::test(workspace, &[])?;
        package::test(workspace)?;
        fuzz::fuzz(workspace, fuzz::SHORT)?;
    }
    Ok(())
}

/// Only the tests in a browser.
pub(crate) fn browser(workspace: &Workspace, names: &[String]) -> Result<()> {
    duckdb::ensure(workspace)?;
    exec::run(workspace.cargo().args(["build", "--workspace", "--bins"]))?;
    browser::test(workspace, names)
}

/// Builds lavra, then has its pages in the documents' pictures.
pub(crate) fn pictures(workspace: &Workspace) -> Result<()> {
    duckdb::ensure(workspace)?;
    exec::run(workspace.cargo().args(["build", "--package", "lavra", "--bin", "lavra"]))?;
    browser::pictures(workspace)
}

/// The whole workspace, unless packages were named.
fn scope(nextest: &[String]) -> &'static [&'static str] {
    let names_packages =
        |argument: &String| argument.starts_with("-p") || argument.starts_with("--package");
    if nextest.iter().any(names_packages) { &[] } else { &["--workspace"] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_packages_narrow_the_scope() {
        assert_eq!(scope(&["-p".to_owned(), "lavra-db".to_owned()]), <&[&str]>::default());
        assert_eq!(scope(&["a_page_past_the_end".to_owned()]), ["--workspace"]);
    }
}
