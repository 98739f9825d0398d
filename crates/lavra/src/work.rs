//! What of the work a process runs.

use clap::ValueEnum;

/// A part of the work, as `--only` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Tasks of the types http and cleanup
    Tasks,
    /// Extractions, their audits and exports
    Extract,
    /// The orchestrator of missions
    Fleet,
    /// Webhooks: what happened, and who is told
    Webhooks,
}

/// Which parts; the default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each part is there or not")]
pub(crate) struct Work {
    pub(crate) tasks: bool,
    pub(crate) extract: bool,
    /// Audits and exports of what was extracted.
    pub(crate) after_extract: bool,
    pub(crate) fleet: bool,
    pub(crate) webhooks: bool,
}

impl Work {
    pub(crate) const ALL: Self =
        Self { tasks: true, extract: true, after_extract: true, fleet: true, webhooks: true };

    /// Runs of extractions and nothing else: for the command that extracts.
    pub(crate) const EXTRACTIONS: Self =
        Self { tasks: false, extract: true, after_extract: false, fleet: false, webhooks: false };

    /// Those that are named; none named is all.
    pub(crate) fn only(parts: &[Part]) -> Self {
        if parts.is_empty() {
            return Self::ALL;
        }
        let has = |part| parts.contains(&part);
        Self {
            tasks: has(Part::Tasks),
            extract: has(Part::Extract),
            after_extract: has(Part::Extract),
            fleet: has(Part::Fleet),
            webhooks: has(Part::Webhooks),
        }
    }

    pub(crate) fn is_any(self) -> bool {
        self != Self::default()
    }

    /// Whether there are tasks to claim, those of webhooks apart, which have a runner of their own.
    pub(crate) fn claims(self) -> bool {
        Self { webhooks: false, ..self }.is_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_run_and_nothing_named_is_all() {
        assert_eq!(Work::only(&[]), Work::ALL);
        let fleet = Work::only(&[Part::Fleet]);
        assert_eq!(fleet, Work { fleet: true, ..Work::default() });
        assert!(fleet.claims() && fleet.is_any());
        let webhooks = Work::only(&[Part::Webhooks]);
        assert!(!webhooks.claims() && webhooks.is_any());
        let all = [Part::Tasks, Part::Extract, Part::Fleet, Part::Webhooks];
        assert_eq!(Work::only(&all), Work::ALL);
        assert!(!Work::default().is_any());
    }
}
