//! What can go wrong with a database, in words that a tired person can act on.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::duck::Holder;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `refusal` where waiting does not help: a wrong password, an unknown database.
    #[error("PostgreSQL at {host} cannot be reached: {reason}; {}", advice(.refusal.as_ref()))]
    Unreachable { host: String, reason: String, refusal: Option<Refusal> },

    #[error("{} is in use by {holder}; {}", path.display(), instead(.holder))]
    Held { path: PathBuf, holder: Holder },

    #[error(
        "the database was written by a newer version of lavra (it has the migration {id}, which \
         this version does not know): use that version, or another database"
    )]
    Newer { id: String },

    #[error("the migration {id} failed: {source}")]
    Migration { id: String, source: Box<Error> },

    #[error("{}: the disk is nearly full ({free_mb} MB free); writing goes on when there is room", path.display())]
    DiskFull { path: PathBuf, free_mb: u64 },

    #[error("could not {operation}: {source}")]
    Duck { operation: &'static str, source: duckdb::Error },

    #[error("could not {operation}: {}", postgres_text(.source))]
    Postgres { operation: &'static str, source: tokio_postgres::Error },

    #[error("could not {operation}: PostgreSQL at {host} did not answer within {limit:?}")]
    Timeout { operation: &'static str, host: String, limit: Duration },

    #[error("{0}")]
    Config(String),

    #[error("{0}")]
    Secret(String),

    #[error("could not {operation} {}: {source}", path.display())]
    Io { operation: &'static str, path: PathBuf, source: std::io::Error },

    #[error("a database thread ended early: {0}")]
    Thread(String),
}

/// What a server that answers does not let us in for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no database of this name.
    NoDatabase(String),
    /// There is no such role, or its password is another: a server does not tell which.
    NotThatRole(String),
    /// Its certificate is of nobody that this machine trusts.
    Untrusted,
    /// It speaks no TLS, which is asked of a server on another machine.
    NoTls,
    Other,
}

fn advice(refusal: Option<&Refusal>) -> String {
    let made = "(docs/operations.md#postgresql), --database (or DB_*) says another";
    match refusal {
        None => "is it running, and is that its address? --database (or DB_*) says another".into(),
        Some(Refusal::NoDatabase(name)) => format!("CREATE DATABASE {name} makes it {made}"),
        Some(Refusal::NotThatRole(name)) => {
            format!("is that the password? CREATE ROLE {name} LOGIN makes a role {made}")
        }
        Some(Refusal::Untrusted) => {
            "this machine does not trust who signed its certificate: SSL_CERT_FILE names a file with one \
             to trust (docs/operations.md#certificates)"
                .into()
        }
        Some(Refusal::NoTls) => {
            "?sslmode=disable in --database does without, where nobody listens in between".into()
        }
        Some(Refusal::Other) => {
            "look at the user, the password and the database in --database (or in DB_*)".into()
        }
    }
}

fn instead(holder: &Holder) -> &'static str {
    match holder.url {
        Some(_) => {
            "stop it, or name another file with --database; several processes at once need PostgreSQL"
        }
        None => "wait until it has ended, or name another file with --database",
    }
}

/// tokio-postgres prints only «db error»: the server's own words are in the source.
fn postgres_text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => match db.detail() {
            Some(detail) => format!("{} ({}; SQLSTATE {})", db.message(), detail, db.code().code()),
            None => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        },
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// Whether what was prepared is gone, or is for tables as they were before. Nothing has run.
pub(crate) fn is_outdated(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        Some(db) => {
            *db.code() == SqlState::INVALID_SQL_STATEMENT_NAME
                || db.message().starts_with("cached plan")
        }
        None => false,
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Whether a failure of DuckDB is of one of these kinds. What a fatal one leaves behind is fatal as well.
///
/// Told by what the text begins with: further on it quotes statements and values, which say what they like.
pub(crate) fn is_duckdbs(error: &duckdb::Error, kinds: &[&str]) -> bool {
    let text = error.to_string();
    let inner = text.strip_prefix("TransactionContext Error: Failed to commit: ");
    let inner = inner.unwrap_or(&text);
    kinds.iter().any(|kind| inner.starts_with(kind))
}

impl Error {
    /// Whether the same call may succeed a little later, with nothing changed by us: the server
    /// restarts, a connection is cut, the disk is full for now.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { refusal, .. } => refusal.is_none(),
            Self::Timeout { .. } | Self::DiskFull { .. } => true,
            Self::Migration { source, .. } => source.is_transient(),
            Self::Postgres { source, .. } => match source.code() {
                // Connection trouble (08), resources (53), operator intervention (57),
                // serialisation and deadlock (40); 25006 is a server that became a replica.
                Some(state) => {
                    let state = state.code();
                    ["08", "53", "57", "40"].iter().any(|class| state.starts_with(class))
                        || state == "25006"
                        || is_outdated(source)
                }
                // A cut connection; not a value that cannot be read as the type asked for.
                None => source.is_closed() || is_io(source),
            },
            Self::Duck { source, .. } => is_duckdbs(source, &["FATAL Error", "IO Error"]),
            Self::Held { .. }
            | Self::Newer { .. }
            | Self::Config(_)
            | Self::Secret(_)
            | Self::Io { .. }
            | Self::Thread(_) => false,
        }
    }

    pub(crate) fn thread(error: impl std::fmt::Display) -> Self {
        Self::Thread(error.to_string())
    }
}
