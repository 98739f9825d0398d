//! Holds everything that was stored against what the world has, and everything that was held against
//! what must be free. What is wrong is said with a code.

mod extraction;
mod fleet;
mod tasks;

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::outside::Outside;
use super::parts::Parts;
use super::plan::Plan;

/// What may be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Code {
    /// Something did not come to its end: it can still be taken up.
    Unfinished,
    /// Something that the world has is not there.
    Lost,
    /// Something is there more than once.
    Twice,
    /// Something is there that the world does not have, or has otherwise.
    Wrong,
    /// Something is still taken after the end.
    Held,
    /// A task failed, and waits to be driven again.
    DeadLetter,
}

impl Code {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Lost => "lost",
            Self::Twice => "twice",
            Self::Wrong => "wrong",
            Self::Held => "held",
            Self::DeadLetter => "dead_letter",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) code: Code,
    /// Of what: a task of the plan, a mission, an ad, a worker.
    pub(super) of: String,
    pub(super) detail: String,
}

impl Finding {
    fn new(code: Code, of: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { code, of: of.into(), detail: detail.into() }
    }
}

/// What was looked at, and what was found.
#[derive(Debug, Default, Serialize)]
pub(super) struct Audited {
    /// Lists of a month each.
    pub(super) months: usize,
    pub(super) pages: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) missions: usize,
    pub(super) ads: usize,
    pub(super) findings: Vec<Finding>,
}

impl Audited {
    /// Whether all that is found is work that can still be done.
    pub(super) fn is_only_unfinished(&self) -> bool {
        self.findings.iter().all(|finding| match finding.code {
            Code::Unfinished | Code::DeadLetter => true,
            Code::Lost | Code::Twice | Code::Wrong | Code::Held => false,
        })
    }
}

/// Looks at everything.
pub(super) async fn audit(
    plan: &Plan,
    outside: &Outside,
    parts: &Parts,
) -> anyhow::Result<Audited> {
    let mut audited = Audited::default();
    let order = plan.order(&outside.pncp_url)?;
    extraction::audit(&parts.database, &order, &outside.pncp, &mut audited).await?;
    let wanted = plan.missions();
    fleet::audit(&parts.database, &parts.fleet, &wanted, &outside.ads, &mut audited).await?;
    tasks::audit(&parts.tasks, &mut audited).await?;
    Ok(audited)
}
