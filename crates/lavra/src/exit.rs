//! How a command ended, for the shell and for the person.

use std::io::ErrorKind;
use std::process::ExitCode;

use lavra_web::Code;

use crate::client::Refused;
use crate::printer::Printer;

#[derive(Debug)]
pub(crate) enum Exit {
    Done,
    Failed(anyhow::Error),
    BadUsage(anyhow::Error),
    /// Finished, but work remains: a task failed, say. The text says what.
    WorkRemains(String),
    /// Interrupted; the same command goes on from where it was.
    Interrupted,
}

impl Exit {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed(_) => 1,
            Self::BadUsage(_) => 2,
            Self::WorkRemains(_) => 3,
            Self::Interrupted => 130,
        }
    }

    pub(crate) fn report(&self, printer: &Printer) -> ExitCode {
        match self {
            Self::Done => {}
            Self::Failed(error) | Self::BadUsage(error) => printer.error(error),
            Self::WorkRemains(text) => printer.note(text),
            Self::Interrupted => printer.note("interrupted"),
        }
        ExitCode::from(self.code())
    }
}

impl From<anyhow::Error> for Exit {
    fn from(error: anyhow::Error) -> Self {
        let is_usage = |code: &str| {
            code == OwnCode::BadUsage.as_str() || code == Code::BadConfiguration.as_str()
        };
        if is_usage(&code(&error)) { Self::BadUsage(error) } else { Self::Failed(error) }
    }
}

/// The codes that only the command line has; all others are the interface's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OwnCode {
    BadUsage,
    CannotListen,
    ServerUnreachable,
    BrokerUnreachable,
    /// Whatever has no code of its own.
    Error,
}

impl OwnCode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::BadUsage => "bad_usage",
            Self::CannotListen => "cannot_listen",
            Self::ServerUnreachable => "server_unreachable",
            Self::BrokerUnreachable => "broker_unreachable",
            Self::Error => "error",
        }
    }
}

/// The stable code of an error: the first that is known of what led to it.
pub(crate) fn code(error: &anyhow::Error) -> String {
    let known = error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<lavra_tasks::Error>() {
            return Some(Code::from(error).as_str().to_owned());
        }
        if let Some(error) = cause.downcast_ref::<lavra_db::Error>() {
            return Some(Code::from(error).as_str().to_owned());
        }
        if let Some(error) = cause.downcast_ref::<lavra_extract::Error>() {
            return of_extraction(error).map(str::to_owned);
        }
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return Some(refused.code.clone());
        }
        let own = match () {
            () if cause.is::<BadUsage>() => OwnCode::BadUsage,
            () if cause.is::<CannotListen>() => OwnCode::CannotListen,
            () if cause.is::<ServerUnreachable>() => OwnCode::ServerUnreachable,
            () if cause.is::<BrokerUnreachable>() => OwnCode::BrokerUnreachable,
            () => return None,
        };
        Some(own.as_str().to_owned())
    });
    known.unwrap_or_else(|| OwnCode::Error.as_str().to_owned())
}

fn of_extraction(error: &lavra_extract::Error) -> Option<&'static str> {
    use lavra_extract::Error;
    match error {
        Error::Database(error) => Some(Code::from(error).as_str()),
        Error::Tasks(error) => Some(Code::from(error).as_str()),
        Error::NothingExtracted(_) => Some(Code::SourceNotFound.as_str()),
        Error::Source(_) | Error::Invalid(_) => Some(OwnCode::BadUsage.as_str()),
        Error::Unreadable(_) | Error::Illegal(_) | Error::Ended(_) | Error::Export(_) => None,
    }
}

/// A mistake in what was typed or configured.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadUsage(pub(crate) String);

/// An address that is another's, or not this machine's.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {place}: {source}; {}", instead(.flag, .source))]
pub(crate) struct CannotListen {
    /// What says where.
    pub(crate) flag: &'static str,
    pub(crate) place: String,
    pub(crate) source: std::io::Error,
}

fn instead(flag: &str, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            format!("is another lavra there already? {flag} takes another port")
        }
        ErrorKind::AddrNotAvailable => format!("{flag} takes an address of this machine"),
        ErrorKind::PermissionDenied => format!("ports below 1024 are root's: {flag} takes another"),
        _ => format!("{flag} takes another address"),
    }
}

/// Nobody answers where a server should be.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server at {base} does not answer: is `lavra serve` running there? --server (or LAVRA_SERVER) says where"
)]
pub(crate) struct ServerUnreachable {
    pub(crate) base: String,
    pub(crate) source: Box<dyn std::error::Error + Send + Sync>,
}

/// A command that is nothing without its broker found none. A service waits for it instead.
#[derive(Debug, thiserror::Error)]
#[error(
    "RabbitMQ at {place} cannot be reached: {reason}; is it running, and is that its address? --broker (or \
     LAVRA_BROKER) says another"
)]
pub(crate) struct BrokerUnreachable {
    pub(crate) place: String,
    pub(crate) reason: String,
}
