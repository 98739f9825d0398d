//! The problems that webhooks report.

use lavra_notify::Error;

use super::{Code, Problem};

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Database(error) => error.into(),
            Error::Tasks(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Invalid(_) => Self::invalid(error.to_string()),
            Error::NotFound(_) => Self::new(Code::WebhookNotFound, error.to_string()),
            Error::NameTaken(_) => Self::new(Code::WebhookConflict, error.to_string()),
            Error::Unreadable => Self::new(Code::SecretUnreadable, error.to_string()),
        }
    }
}
