//! The problems that the tasks and the database report. The log gets the whole; an answer gets
//! the server's message, never its data, and never a secret.

use lavra_tasks::Error;

use super::{Code, Problem};

impl From<&Error> for Code {
    fn from(error: &Error) -> Self {
        match error {
            Error::Database(error) => error.into(),
            Error::NoSuchTask(_) => Self::TaskNotFound,
            Error::NoResult(_) => Self::ResultNotFound,
            Error::NoSuchDeadLetter(_) => Self::DeadLetterNotFound,
            Error::NoSuchSchedule(_) => Self::ScheduleNotFound,
            Error::UnknownType { .. } => Self::UnknownTaskType,
            Error::Invalid(_) => Self::InvalidRequest,
            Error::Illegal(_) => Self::IllegalTransition,
            Error::VersionMismatch { .. } => Self::VersionMismatch,
            Error::Lost(_) => Self::TaskLost,
            Error::KeyReused(_) => Self::IdempotencyKeyReused,
            Error::InBatch { error, .. } => Self::from(&**error),
            Error::Artefact { .. } => Self::ArtefactError,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let problem = Self::new(Code::from(&error), error.to_string());
        match error {
            Error::Database(error) => error.into(),
            Error::Illegal(illegal) => problem.with("task_status", illegal.status.as_str()),
            Error::VersionMismatch { expected, actual } => {
                problem.with("expected", expected).with("actual", actual)
            }
            Error::InBatch { index, error } => {
                let problem = Self::from(*error);
                let detail = format!("tasks[{index}]: {}", problem.detail);
                Self { detail, ..problem }.with("index", index)
            }
            Error::Artefact { operation, source } => {
                tracing::warn!(error = %source, operation, "an artefact could not be reached");
                Self { detail: format!("the artefact could not be {operation}"), ..problem }
            }
            Error::NoSuchTask(_)
            | Error::NoResult(_)
            | Error::NoSuchDeadLetter(_)
            | Error::NoSuchSchedule(_)
            | Error::UnknownType { .. }
            | Error::Invalid(_)
            | Error::Lost(_)
            | Error::KeyReused(_) => problem,
        }
    }
}

impl From<lavra_db::Error> for Problem {
    fn from(error: lavra_db::Error) -> Self {
        let transient = error.is_transient();
        if transient {
            tracing::warn!(%error, "the database is in trouble");
        } else {
            tracing::error!(%error, "the database refused");
        }
        let problem = Self::new(Code::from(&error), database_detail(&error));
        if transient { problem.passing() } else { problem }
    }
}

impl From<&lavra_db::Error> for Code {
    fn from(error: &lavra_db::Error) -> Self {
        use lavra_db::Error;
        match error {
            Error::Unreachable { .. } | Error::Timeout { .. } => Self::DatabaseUnreachable,
            Error::Held { .. } => Self::DatabaseHeld,
            Error::Newer { .. } => Self::DatabaseNewer,
            Error::Migration { source, .. } => Self::from(&**source),
            Error::DiskFull { .. } => Self::DiskFull,
            Error::Config(_) => Self::BadConfiguration,
            Error::Secret(_) => Self::SecretUnreadable,
            Error::Duck { .. } | Error::Postgres { .. } | Error::Io { .. } | Error::Thread(_) => {
                Self::DatabaseError
            }
        }
    }
}

fn database_detail(error: &lavra_db::Error) -> String {
    use lavra_db::Error;
    match error {
        Error::Postgres { operation, source } => match source.as_db_error() {
            Some(db) => format!("could not {operation}: {}", db.message()),
            None => format!("could not {operation}: the connection to PostgreSQL was cut"),
        },
        // DuckDB appends the statement on further lines.
        Error::Duck { operation, source } => {
            let text = source.to_string();
            format!("could not {operation}: {}", text.lines().next().unwrap_or_default())
        }
        Error::Timeout { operation, limit, .. } => {
            format!("could not {operation}: the database did not answer within {limit:?}")
        }
        Error::Unreachable { .. } => {
            "the database cannot be reached; the log has the reason".into()
        }
        Error::DiskFull { free_mb, .. } => {
            format!("only {free_mb} MB are free where the database lies")
        }
        Error::Io { operation, .. } => format!("could not {operation} a file of the database"),
        Error::Secret(_) => "a stored secret could not be read; the log has the reason".into(),
        Error::Thread(_) => "a thread of the database ended; the log has the reason".into(),
        Error::Held { .. } | Error::Newer { .. } | Error::Migration { .. } | Error::Config(_) => {
            error.to_string()
        }
    }
}
