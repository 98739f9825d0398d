//! Lavra killed at half: what it asks for again, and what is missing.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::exec;
use crate::torture::half::{PAGES, World};
use crate::workspace::Workspace;

/// What came of it. That it was none that was durable, and that nothing is missing, is sure by then.
pub(in crate::torture) struct Killed {
    pub(in crate::torture) served: u64,
    pub(in crate::torture) again: u64,
}

pub(super) fn line(workspace: &Workspace) -> Result<String> {
    let Killed { served, again } = killed_at_half(workspace)?;
    Ok(format!(
        "{PAGES} pages, killed (-9) when {served} were served, started again: {again} were served again, \
         none of them durable; nothing is missing"
    ))
}

pub(in crate::torture) fn killed_at_half(workspace: &Workspace) -> Result<Killed> {
    let world = World::start(workspace)?;
    let lavra = || Command::new(workspace.target().join("debug/lavra"));
    let extract = || {
        let mut command = lavra();
        command.args(["extract", "run", "pncp", "--from", "2024-07", "--to", "2024-07"]);
        command.args(["--endpoint", "contratacoes_publicacao_modalidade_6"]);
        command.args(["--base-url", &world.base()]);
        command
    };
    let durable = || -> Result<u64> {
        let mut command = lavra();
        command.current_dir(world.directory());
        command.args(["--json", "sql", "SELECT count(*) AS n FROM psa.pncp_pages"]);
        let rows: Value = serde_json::from_str(&exec::capture(&mut command)?)?;
        rows[0]["n"].as_u64().context("no count of pages")
    };
    let served = world.kill_at_half("lavra", extract())?;
    let before = durable()?;
    let status = world.start_again("lavra", extract())?;
    ensure!(status.success(), "lavra ended with {status}");
    let (again, after) = (world.served_again()?, durable()?);
    // What was served and not kept is served again, once; anything beyond it was durable.
    let wrongly = again.saturating_sub(served.saturating_sub(before));
    ensure!(wrongly == 0, "{wrongly} durable pages were asked for again");
    ensure!(after == PAGES, "{after} pages are stored of {PAGES}");
    Ok(Killed { served, again })
}
