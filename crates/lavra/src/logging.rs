//! The log, to stderr: warnings by default (of servers and runners also what they do, of the demonstration
//! errors, and what the database is waited for), more by `-v` or `LAVRA_LOG`.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::exit::BadUsage;
use crate::variables::Variable;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

/// How much a command says by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// What went wrong in passing.
    Warns,
    /// It serves or runs until it is told to stop, and says what it does.
    Tells,
    /// Things go wrong on purpose, and bars stand where the log would be.
    Shows,
}

/// Fails where `LAVRA_LOG` is not a filter.
pub(crate) fn start(verbose: u8, format: Format, manner: Manner) -> Result<(), BadUsage> {
    let default = match (verbose, manner) {
        (0, Manner::Warns) => "warn,lapin=off",
        (0, Manner::Shows) => "error,lavra_db=warn,lapin=off",
        (0, Manner::Tells) => {
            "warn,lavra=info,lavra_db=info,lavra_tasks=info,lavra_web=info,lavra_worker=info,lapin=off"
        }
        (1, _) => {
            "info,lavra=debug,lavra_db=debug,lavra_tasks=debug,lavra_web=debug,lavra_worker=debug,lapin=warn"
        }
        _ => "debug",
    };
    let filter = Variable::Log.read().unwrap_or_else(|| default.to_owned());
    let filter = EnvFilter::try_new(&filter).map_err(|error| {
        let name = Variable::Log.name();
        BadUsage(format!("{name}={filter}: {error}; such as {name}=info or {name}=lavra_db=debug"))
    })?;
    let base = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        Format::Text => base.init(),
        Format::Json => base.json().init(),
    }
    Ok(())
}
