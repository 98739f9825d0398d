//! The problems that the fleet reports.

use lavra_fleet::Error;

use super::{Code, Problem};

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Database(error) => error.into(),
            Error::Tasks(error) => error.into(),
            Error::Invalid(_) => Self::invalid(error.to_string()),
            Error::NotFound { what, .. } => {
                Self::new(Code::FleetNotFound, error.to_string()).with("kind", what)
            }
            Error::NameTaken { .. } | Error::Conflict(_) | Error::Refused { .. } => {
                Self::new(Code::FleetConflict, error.to_string())
            }
            Error::Unreadable(_) => {
                tracing::error!(%error, "the fleet's tables cannot be read");
                Self::new(Code::DatabaseError, "the log has the reason")
            }
        }
    }
}
