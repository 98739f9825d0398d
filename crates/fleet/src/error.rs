//! What can go wrong when the fleet is asked for something.

use crate::model::MissionId;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] lavra_db::Error),
    #[error(transparent)]
    Tasks(#[from] lavra_tasks::Error),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
    #[error("there is no {what} {id:?}")]
    NotFound { what: &'static str, id: String },
    #[error("there is already a {what} with the name {name:?}")]
    NameTaken { what: &'static str, name: String },
    /// It is not in the state for that.
    #[error("{0}")]
    Conflict(String),
    #[error("the mission {id} {why}")]
    Refused { id: MissionId, why: String },
    #[error("a row could not be read: {0}")]
    Unreadable(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => error.is_transient(),
            Self::Tasks(error) => error.is_transient(),
            Self::Invalid(_)
            | Self::NotFound { .. }
            | Self::NameTaken { .. }
            | Self::Conflict(_)
            | Self::Refused { .. }
            | Self::Unreadable(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn trouble_of_the_tasks_passes_as_it_does_there() {
        let unreachable = lavra_db::Error::Unreachable {
            host: "db.example".into(),
            reason: "connection refused".into(),
            refusal: None,
        };
        let passes = lavra_tasks::Error::from(unreachable);
        let stays = lavra_tasks::Error::Invalid("it makes no sense".into());
        assert!(Error::from(passes).is_transient());
        assert!(!Error::from(stays).is_transient());
    }
}
