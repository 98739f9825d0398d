//! Why a worker cannot start.

use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Invalid(String),

    #[error("another worker has {0} open: give this one a directory of its own (--data)")]
    Held(PathBuf),

    #[error("{path} could not be {operation}: {source}")]
    Disk { operation: &'static str, path: PathBuf, source: std::io::Error },

    #[error(transparent)]
    Storage(#[from] lavra_tasks::Error),

    #[error("the worker stopped: {0}")]
    Served(#[from] std::io::Error),
}
