//! Why a job failed, in the codes that the orchestrator knows.

use std::fmt;

/// The codes of the fleet that a writer gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The writer or its database had trouble; the same job may succeed later.
    Generic,
    /// The database did not answer in time.
    Timeout,
    /// The table, the key or the shape of the source is not what the job says.
    Schema,
    /// The source cannot be read.
    Storage,
    /// The source does not take our credentials.
    Credentials,
    Internal,
}

impl Code {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "ERROR300",
            Self::Timeout => "ERROR302",
            Self::Schema => "ERROR303",
            Self::Storage => "ERROR400",
            Self::Credentials => "ERROR401",
            Self::Internal => "ERROR500",
        }
    }
}

/// A job's end that is not a good one. Never carries what came from a source, nor a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// Whether the same job may succeed a little later.
    pub is_passing: bool,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), is_passing: false }
    }

    pub fn schema(message: impl Into<String>) -> Self {
        Self::new(Code::Schema, message)
    }

    pub fn storage(message: impl Into<String>) -> Self {
        Self::new(Code::Storage, message)
    }

    /// With how many elements were settled before it, which who sends them again must know.
    #[must_use]
    pub(crate) fn after(self, processed: u64) -> Self {
        if processed == 0 {
            return self;
        }
        let message = format!("{} (its first {processed} elements are stored)", self.message);
        Self { message, ..self }
    }

    #[must_use]
    pub fn passing(self) -> Self {
        Self { is_passing: true, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for Failure {}

impl From<crate::split::Malformed> for Failure {
    fn from(error: crate::split::Malformed) -> Self {
        use crate::split::Malformed;
        match &error {
            Malformed::Empty | Malformed::NotJson { .. } => Self::storage(error.to_string()),
            // Perhaps only this time.
            Malformed::Truncated { .. } => Self::storage(error.to_string()).passing(),
            Malformed::NoSuchPath { .. }
            | Malformed::WrongKind { .. }
            | Malformed::Twice { .. } => Self::schema(format!("{error} (source.json_path)")),
        }
    }
}

impl From<lavra_db::Error> for Failure {
    fn from(error: lavra_db::Error) -> Self {
        let code = match &error {
            lavra_db::Error::Timeout { .. } => Code::Timeout,
            _ => Code::Generic,
        };
        let message = match &error {
            // Without the detail, in which values of rows stand.
            lavra_db::Error::Postgres { operation, source } => source.as_db_error().map(|said| {
                let (words, state) = (said.message(), said.code().code());
                format!("could not {operation}: {words} (SQLSTATE {state})")
            }),
            _ => None,
        };
        let message = message.unwrap_or_else(|| error.to_string());
        Self { code, is_passing: error.is_transient(), message }
    }
}
