//! What can go wrong when webhooks are asked for something.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] lavra_db::Error),
    #[error(transparent)]
    Tasks(#[from] lavra_tasks::Error),
    /// The key of the secrets is not there.
    #[error(transparent)]
    Keys(#[from] lavra_fleet::Error),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
    #[error("there is no webhook {0:?}")]
    NotFound(String),
    #[error("there is already a webhook with the name {0:?}")]
    NameTaken(String),
    /// What was sealed for a webhook is not what it should be.
    #[error("the address of the webhook cannot be read: set its URL and its secret again")]
    Unreadable,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
