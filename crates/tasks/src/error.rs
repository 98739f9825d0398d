//! What a caller of the tasks can be told.

use crate::machine::Illegal;
use crate::model::{DeadLetterId, TaskId};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] lavra_db::Error),

    #[error("there is no task {0}")]
    NoSuchTask(TaskId),

    #[error("the task {0} has no result")]
    NoResult(TaskId),

    #[error("there is no dead letter {0}")]
    NoSuchDeadLetter(DeadLetterId),

    #[error("there is no schedule {0:?}")]
    NoSuchSchedule(String),

    #[error(
        "nobody here knows the task type {kind:?}; known: {known} (a worker's first claim, or \
         [tasks.types] in lavra.toml, makes a type known)"
    )]
    UnknownType { kind: String, known: String },

    #[error("{0}")]
    Invalid(String),

    #[error(transparent)]
    Illegal(#[from] Illegal),

    #[error("the task is at version {actual}, not {expected}: read it again and decide again")]
    VersionMismatch { expected: i32, actual: i32 },

    #[error("the task {0} is no longer yours: it was cancelled, taken over or ended")]
    Lost(TaskId),

    #[error("the Idempotency-Key {0:?} was used for another request before")]
    KeyReused(String),

    /// What is wrong with one of several requests.
    #[error("tasks[{index}]: {error}")]
    InBatch { index: usize, error: Box<Error> },

    #[error("the artefact could not be {operation}: {source}")]
    Artefact { operation: &'static str, source: object_store::Error },
}

impl Error {
    /// Says which of several requests this is about, unless it is about the database.
    pub(crate) fn of_request(self, index: usize) -> Self {
        match self {
            Self::Database(_) => self,
            error => Self::InBatch { index, error: Box::new(error) },
        }
    }

    /// The same where there is only one request.
    pub(crate) fn of_the_only_one(self) -> Self {
        match self {
            Self::InBatch { error, .. } => *error,
            error => error,
        }
    }

    /// Whether the same call may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => error.is_transient(),
            Self::Artefact { .. } => true,
            Self::InBatch { error, .. } => error.is_transient(),
            Self::NoSuchTask(_)
            | Self::NoResult(_)
            | Self::NoSuchDeadLetter(_)
            | Self::NoSuchSchedule(_)
            | Self::UnknownType { .. }
            | Self::Invalid(_)
            | Self::Illegal(_)
            | Self::VersionMismatch { .. }
            | Self::Lost(_)
            | Self::KeyReused(_) => false,
        }
    }
}
