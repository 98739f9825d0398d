//! How a command ended, for the shell and for the person.

use std::process::ExitCode;

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
        let is_usage = error
            .downcast_ref::<lavra_db::Error>()
            .is_some_and(|error| matches!(error, lavra_db::Error::Config(_)));
        if is_usage || error.is::<BadUsage>() { Self::BadUsage(error) } else { Self::Failed(error) }
    }
}

/// A mistake in what was typed or configured.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadUsage(pub(crate) String);
