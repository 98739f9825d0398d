//! The problems that extraction reports.

use lavra_extract::Error;

use super::{Code, Problem};

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Database(error) => error.into(),
            Error::Tasks(error) => error.into(),
            Error::Source(_) | Error::Invalid(_) => Self::invalid(error.to_string()),
            Error::NothingExtracted(_) => Self::new(Code::SourceNotFound, error.to_string()),
            Error::Illegal(_) => Self::new(Code::IllegalTransition, error.to_string()),
            Error::Unreadable(_) | Error::Ended(_) | Error::Export(_) => {
                tracing::error!(%error, "extraction failed");
                Self::new(Code::DatabaseError, "the log has the reason")
            }
        }
    }
}
