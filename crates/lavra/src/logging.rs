//! The log, to stderr: warnings by default (of servers and runners also what they do), more by `-v` or `LAVRA_LOG`.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::variables::Variable;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

/// `stays`: a process that serves or runs until it is told to stop says what it does.
pub(crate) fn start(verbose: u8, format: Format, stays: bool) {
    let default = match verbose {
        0 if !stays => "warn,lapin=off",
        0 => {
            "warn,lavra=info,lavra_db=info,lavra_tasks=info,lavra_web=info,lavra_worker=info,lapin=off"
        }
        1 => {
            "info,lavra=debug,lavra_db=debug,lavra_tasks=debug,lavra_web=debug,lavra_worker=debug,lapin=warn"
        }
        _ => "debug",
    };
    let filter = Variable::Log.read().unwrap_or_else(|| default.to_owned());
    let filter = EnvFilter::try_new(&filter).unwrap_or_else(|_| EnvFilter::new(default));
    let base = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        Format::Text => base.init(),
        Format::Json => base.json().init(),
    }
}
