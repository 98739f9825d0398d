//! What can go wrong.

use crate::machine::Illegal;
use crate::source::{Mistakes, Source};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] lavra_db::Error),

    #[error(transparent)]
    Tasks(#[from] lavra_tasks::Error),

    #[error("{0}")]
    Source(#[from] Mistakes),

    #[error("the store answered with what it cannot hold: {0}")]
    Unreadable(String),

    #[error(transparent)]
    Illegal(#[from] Illegal),

    #[error("a part of the run came to a sudden end: {0}")]
    Ended(#[from] tokio::task::JoinError),

    #[error("the export failed: {0}")]
    Export(#[source] Box<dyn std::error::Error + Send + Sync>),

    #[error("nothing of {0:?} was extracted here; {command} does it", command = run_of(.0))]
    NothingExtracted(String),

    /// A request of the user that makes no sense.
    #[error("{0}")]
    Invalid(String),
}

/// The command that extracts a source, which is known by its name or by its file.
fn run_of(source: &str) -> String {
    let which = if Source::built_in_names().contains(&source) { source } else { "--source FILE" };
    format!("`lavra extract run {which} --from MONTH --to MONTH`")
}
