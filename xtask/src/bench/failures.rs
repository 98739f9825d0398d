//! Measurements that did not run. The others still do; the bench as a whole has failed then.

use anyhow::{Result, bail};

use crate::interrupt::Interrupted;
use crate::output;

/// What has failed so far.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// That a measurement failed is told now and again at the end. Only an interruption ends the bench.
    pub(crate) fn note(&mut self, measured: Result<()>) -> Result<()> {
        match measured {
            Err(error) if error.is::<Interrupted>() => Err(error),
            Err(error) => {
                output::note(&format!("FAILED: {error:#}"));
                self.0.push(format!("{error:#}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    pub(crate) fn end(self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        bail!("{} measurements did not run:\n  {}", self.0.len(), self.0.join("\n  "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_kept_for_the_end_and_an_interruption_is_not() {
        let mut failures = Failures::default();
        assert!(failures.note(Err(anyhow::anyhow!("no server"))).is_ok());
        assert!(failures.note(Err(Interrupted.into())).is_err());
        assert!(failures.end().unwrap_err().to_string().ends_with("no server"));
        assert!(Failures::default().end().is_ok());
    }
}
