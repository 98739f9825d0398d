//! One command per file.

pub(crate) mod dead_letter;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod extract;
pub(crate) mod migrate;
pub(crate) mod schedule;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod sql;
pub(crate) mod task;
mod wait;
pub(crate) mod world;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::printer::Printer;

pub(crate) fn completions(shell: clap_complete::Shell, printer: &Printer) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lavra", &mut script);
    printer.data(String::from_utf8_lossy(&script).trim_end());
}

/// Reads JSON from an argument, or from stdin for `-`.
pub(crate) fn json(what: &str, text: &str) -> anyhow::Result<serde_json::Value> {
    let text =
        if text == "-" { std::io::read_to_string(std::io::stdin())? } else { text.to_owned() };
    serde_json::from_str(&text)
        .map_err(|error| crate::exit::BadUsage(format!("{what} is not JSON: {error}")).into())
}

/// Returns at Ctrl-C or SIGTERM.
pub(crate) async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _interrupted = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
