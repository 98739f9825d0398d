//! `cargo xtask torture peers`: what other systems do when they are killed at half of 960 pages and started again
//! with the same command, and Lavra beside them. Nothing is demanded of the others: the table says what happened.
//!
//! A page counts as served again when the world has served it once more. What is missing is what the world has and
//! no record of the peer's own output has the key of.

mod missing;
mod python;

use anyhow::{Result, ensure};

use super::extract::half::killed_at_half;
use super::half::{PAGES, World};
use crate::workspace::Workspace;
use crate::{duckdb, exec, output};
use missing::Missing;
use python::{Installed, Peer};

/// A row of the table.
struct Row {
    name: String,
    again: String,
    missing: String,
}

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "it takes no arguments");
    duckdb::ensure(workspace)?;
    exec::run_beside_data(workspace.cargo().args(["build", "--package", "lavra"]))?;
    let installed: Vec<Installed> =
        Peer::ALL.into_iter().map(|peer| peer.install(workspace)).collect::<Result<_>>()?;
    let mut rows = Vec::new();
    for peer in &installed {
        output::step(&format!("{}, killed and started again", peer.title()));
        rows.push(of_a_peer(workspace, peer)?);
    }
    output::step("Lavra, killed and started again");
    rows.push(of_lavra(workspace)?);
    output::data(&table(&rows));
    Ok(())
}

fn of_a_peer(workspace: &Workspace, peer: &Installed) -> Result<Row> {
    let world = World::start(workspace)?;
    let served = world.kill_at_half(peer.name(), peer.command(&world))?;
    let status = world.start_again(peer.name(), peer.command(&world))?;
    let missing = Missing::of(world.port(), &peer.stored(&world)?)?;
    let ended =
        status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
    Ok(Row {
        name: peer.title(),
        again: again(world.served_again()?, served),
        missing: format!("{missing} ({ended})"),
    })
}

fn of_lavra(workspace: &Workspace) -> Result<Row> {
    let killed = killed_at_half(workspace)?;
    let again = again(killed.again, killed.served);
    let missing = "nothing (exit code 0)".into();
    Ok(Row { name: "Lavra".into(), again: format!("{again}, none that was durable"), missing })
}

fn again(again: u64, served: u64) -> String {
    match again {
        0 => format!("none of {served}"),
        all if all == served => format!("all {served}"),
        some => format!("{some} of {served}"),
    }
}

fn table(rows: &[Row]) -> String {
    let line = |[name, again, missing]: [&str; 3]| format!("{name:<34}{again:<40}{missing}");
    let mut lines = vec![
        format!("{PAGES} pages, killed (-9) at half, started again"),
        line(["", "pages served again", "missing at the end"]),
    ];
    lines.extend(rows.iter().map(|row| line([&row.name, &row.again, &row.missing])));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_again_is_told_of_what_had_been_served() {
        assert_eq!(again(0, 480), "none of 480");
        assert_eq!(again(21, 480), "21 of 480");
        assert_eq!(again(480, 480), "all 480");
    }
}
