//! The problems that the tasks and the database report. The log gets the whole; an answer gets
//! the server's message, never its data, and never a secret.

use lavra_tasks::Error;

use super::{Code, Problem};

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Database(error) => error.into(),
            Error::NoSuchTask(_) => Self::new(Code::TaskNotFound, text),
            Error::NoResult(_) => Self::new(Code::ResultNotFound, text),
            Error::NoSuchDeadLetter(_) => Self::new(Code::DeadLetterNotFound, text),
            Error::NoSuchSchedule(_) => Self::new(Code::ScheduleNotFound, text),
            Error::UnknownType { .. } => Self::new(Code::UnknownTaskType, text),
            Error::Invalid(_) => Self::new(Code::InvalidRequest, text),
            Error::Illegal(illegal) => Self::new(Code::IllegalTransition, text)
                .with("task_status", illegal.status.as_str()),
            Error::VersionMismatch { expected, actual } => Self::new(Code::VersionMismatch, text)
                .with("expected", expected)
                .with("actual", actual),
            Error::Lost(_) => Self::new(Code::TaskLost, text),
            Error::KeyReused(_) => Self::new(Code::IdempotencyKeyReused, text),
            Error::InBatch { index, error } => {
                let problem = Self::from(*error);
                let detail = format!("tasks[{index}]: {}", problem.detail);
                Self { detail, ..problem }.with("index", index)
            }
            Error::Artefact { operation, source } => {
                tracing::warn!(error = %source, operation, "an artefact could not be reached");
                Self::new(Code::ArtefactError, format!("the artefact could not be {operation}"))
            }
            Error::Broker(reason) => {
                tracing::warn!(reason, "the broker refused");
                Self::new(Code::BrokerError, "RabbitMQ refused; the log has the reason")
            }
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
        let problem = Self::new(database_code(&error), database_detail(&error));
        if transient { problem.passing() } else { problem }
    }
}

fn database_code(error: &lavra_db::Error) -> Code {
    use lavra_db::Error;
    match error {
        Error::Unreachable { .. } | Error::Timeout { .. } => Code::DatabaseUnreachable,
        Error::Held { .. } => Code::DatabaseHeld,
        Error::Newer { .. } => Code::DatabaseNewer,
        Error::Migration { source, .. } => database_code(source),
        Error::DiskFull { .. } => Code::DiskFull,
        Error::Config(_) => Code::BadConfiguration,
        Error::Secret(_) => Code::SecretUnreadable,
        Error::Duck { .. } | Error::Postgres { .. } | Error::Io { .. } | Error::Thread(_) => {
            Code::DatabaseError
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
