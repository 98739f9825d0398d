//! One command per file.

pub(crate) mod dead_letter;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod extract;
pub(crate) mod fleet;
pub(crate) mod key;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod mission;
pub(crate) mod schedule;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod sql;
pub(crate) mod task;
mod wait;
pub(crate) mod webhook;
pub(crate) mod worker;
pub(crate) mod world;
pub(crate) mod writer;

use std::io::{ErrorKind, IsTerminal};
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::Cli;
use crate::exit::{BadUsage, Exit};
use crate::printer::Printer;

pub(crate) fn completions(shell: clap_complete::Shell, printer: &Printer) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lavra", &mut script);
    printer.data(String::from_utf8_lossy(&script).trim_end());
}

/// All of stdin, without the end of its last line. A person who sits there is told that it is waited for.
pub(crate) fn typed(what: &str, printer: &Printer) -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        printer.note(&format!("type the {what}, then Enter and Ctrl-D"));
    }
    let text = std::io::read_to_string(std::io::stdin())
        .with_context(|| format!("the {what} cannot be read from stdin"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The text of a file that was named; `what` it is, for the one who named it.
pub(crate) fn read_file(what: &str, file: &Path) -> Result<String, BadUsage> {
    std::fs::read_to_string(file).map_err(|error| {
        let file = file.display();
        BadUsage(match error.kind() {
            ErrorKind::NotFound => {
                format!("{what} {file} is not there: is that its name, seen from this directory?")
            }
            ErrorKind::InvalidData => format!("{what} {file} is not text (UTF-8)"),
            _ => format!("{what} {file} cannot be read: {error}"),
        })
    })
}

/// Reads JSON from an argument, or from stdin for `-`.
pub(crate) fn json(what: &str, text: &str) -> anyhow::Result<serde_json::Value> {
    let text =
        if text == "-" { std::io::read_to_string(std::io::stdin())? } else { text.to_owned() };
    serde_json::from_str(&text)
        .map_err(|error| BadUsage(format!("{what} is not JSON: {error}")).into())
}

/// Cancelled by the first Ctrl-C or SIGTERM; a second one ends the process at once. No signal is
/// missed from here on, whatever the caller waits for.
pub(crate) fn on_signal() -> anyhow::Result<CancellationToken> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let told = CancellationToken::new();
    let first = told.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if first.is_cancelled() {
                let text = "stopped at once; what was stored is there, and is gone on from";
                Printer::new(false).note(text);
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
            first.cancel();
        }
    });
    Ok(told)
}
