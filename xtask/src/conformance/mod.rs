//! `cargo xtask conformance`: the HTTP API, held against its own description by schemathesis.
//!
//! The server is the real one, on a DuckDB file with something of everything in it, so that the
//! cases reach more than refusals. Nothing is run meanwhile: the cases make tasks that would call
//! the outside.

mod filling;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::workspace::Workspace;
use crate::{duckdb, exec, http, output, ports, python};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    duckdb::ensure(workspace)?;
    exec::run(workspace.cargo().args(["build", "--package", "lavra", "--bin", "lavra"]))?;
    check(workspace)
}

/// With the `lavra` that was built.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let folder = workspace.root().join("xtask/schemathesis");
    let python = python::environment(workspace, "schemathesis", &folder.join("requirements.txt"))?;
    let lavra =
        Lavra { program: workspace.target().join("debug/lavra"), place: tempfile::tempdir()? };
    extract(&lavra)?;
    let (mut server, port) = serve(&lavra)?;
    let known = filling::fill(port)?;
    output::step("schemathesis: every operation of /openapi.json, all checks");
    let mut cases = workspace.command(python.with_file_name("schemathesis"));
    cases.current_dir(&folder).env("LAVRA_KNOWN_IDS", known.to_string());
    cases.args(["--config-file", "schemathesis.toml", "run"]);
    cases.arg(format!("http://127.0.0.1:{port}/openapi.json"));
    exec::run(&mut cases)?;
    ensure!(server.is_alive()?, "the server ended under the cases");
    server.stop(Signal::TERM, PATIENCE)
}

/// The program, and a directory for its file.
struct Lavra {
    program: PathBuf,
    place: TempDir,
}

impl Lavra {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(self.place.path()).args(["--database", "lavra.duckdb"]);
        command
    }

    fn log(&self, name: &str) -> PathBuf {
        Path::new(self.place.path()).join(name)
    }
}

fn serve(lavra: &Lavra) -> Result<(Daemon, u16)> {
    let port = ports::free()?;
    let mut command = lavra.command();
    command.args(["serve", "--no-runner", "--listen", &format!("127.0.0.1:{port}")]);
    let mut server = Daemon::start("lavra serve", command, &lavra.log("serve.log"))?;
    server.wait_until(PATIENCE, || http::send(port, "GET", "/readyz", &[], "").is_ok())?;
    Ok((server, port))
}

/// A month of a list and a part of another, from a world that is gone afterwards.
fn extract(lavra: &Lavra) -> Result<()> {
    let port = ports::free()?;
    let mut command = lavra.command();
    command.args(["world", "--scale", "0.02", "--listen", &format!("127.0.0.1:{port}")]);
    let mut world = Daemon::start("the world", command, &lavra.log("world.log"))?;
    world.wait_until(PATIENCE, || http::send(port, "GET", "/_world/faults", &[], "").is_ok())?;
    let base = format!("http://127.0.0.1:{port}/api/consulta");
    let mut command = lavra.command();
    command.args(["extract", "run", "pncp", "--from", "2024-01", "--to", "2024-02"]);
    command.args(["--endpoint", "contratos_publicacao", "--base-url", &base, "--json"]);
    exec::capture(&mut command)?;
    Ok(())
}
