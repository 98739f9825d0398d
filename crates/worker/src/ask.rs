//! One page, asked for until it is there, or will not be.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use lavra_extract::breaker;
use lavra_extract::client::Fetch;
use lavra_extract::host::{Ended, Host};
use lavra_extract::reading::{Kind, Reading, read};
use lavra_tasks::Backoff;

use crate::config::Timing;
use crate::machine::Event;
use crate::model::{Blame, Code, Failure};
use crate::plan::Plan;

/// What a session asks with: its client, and what the source bears.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) client: Arc<dyn Fetch>,
    pub(crate) host: Arc<Host>,
    pub(crate) timing: Timing,
}

pub(crate) enum Asked {
    Page(Bytes),
    Empty,
    PastEnd,
}

/// Why something ended, and what that means for the session.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) failure: Failure,
    pub(crate) event: Option<Event>,
}

impl Trouble {
    pub(crate) fn new(error_code: Code, blame: Blame, message: impl Into<String>) -> Self {
        let failure = Failure { error_code, blame, error_message: message.into() };
        Self { failure, event: None }
    }

    pub(crate) fn broke(message: impl Into<String>) -> Self {
        let event = Some(Event::Broke);
        Self { event, ..Self::new(Code::Error103, Blame::Proxy, message) }
    }

    pub(crate) fn stalled(message: impl Into<String>) -> Self {
        let event = Some(Event::Stalled);
        Self { event, ..Self::new(Code::Error102, Blame::Proxy, message) }
    }

    /// Of an answer that does not get better.
    fn of(kind: Kind, status: Option<u16>, message: &str) -> Self {
        match (kind, status) {
            (_, Some(407)) => Self::broke("the proxy does not take the credentials"),
            (Kind::Connection, _) => Self::broke(format!("through the proxy: {message}")),
            (Kind::Timeout | Kind::Throttled, _) | (Kind::Refused, Some(401 | 403 | 451)) => {
                Self::stalled(format!("the source does not answer this proxy: {message}"))
            }
            (Kind::Refused, _) => {
                Self::new(Code::Error500, Blame::Mission, format!("the source: {message}"))
            }
            (Kind::Server | Kind::Garbled | Kind::TooLarge, _) => {
                Self::new(Code::Error200, Blame::Nobody, format!("the source: {message}"))
            }
        }
    }
}

impl Way {
    pub(crate) fn new(client: Arc<dyn Fetch>, plan_limit: usize, timing: Timing) -> Self {
        // What fails again and again fails the job, and the orchestrator decides what then.
        let never = breaker::Settings { failures: u32::MAX, ..breaker::Settings::default() };
        Self { client, host: Host::new(plan_limit, never), timing }
    }

    /// Page `page` of list `list`.
    pub(crate) async fn ask(&self, plan: &Plan, list: usize, page: i64) -> Result<Asked, Trouble> {
        let wrong = |text: String| Trouble::new(Code::Error500, Blame::Mission, text);
        let url = plan.url(list, page).map_err(wrong)?;
        let endpoint = &plan.endpoint;
        let mut failed = 0;
        loop {
            let mut permit = self.host.permit(&endpoint.name, endpoint.in_flight).await;
            let answer = self.client.fetch(&url).await;
            permit.land();
            let status = answer.as_ref().ok().map(|reply| reply.status);
            let reading = read(&answer, &plan.source, endpoint, page, failed, Timestamp::now());
            permit.end(Ended::of(&reading));
            let failure = match reading {
                Reading::Data(_) => {
                    return Ok(Asked::Page(answer.map(|reply| reply.body).unwrap_or_default()));
                }
                Reading::Empty => return Ok(Asked::Empty),
                Reading::PastEnd => return Ok(Asked::PastEnd),
                // Page 1 was not refused: what is refused now is the server's mood.
                Reading::Refused(failure)
                    if page > 1 && failure.kind == Kind::Refused && status != Some(407) =>
                {
                    failure
                }
                Reading::Refused(failure) => {
                    return Err(Trouble::of(failure.kind, status, &failure.error));
                }
                Reading::Retry(failure) => failure,
            };
            failed += 1;
            tracing::debug!(page, failed, error = %failure.error, "a page did not come");
            if failed >= self.timing.attempts {
                return Err(Trouble::of(failure.kind, status, &failure.error));
            }
            let (first, longest) = self.timing.backoff;
            let tries = i32::try_from(failed).unwrap_or(i32::MAX);
            tokio::time::sleep(Backoff { first, longest }.wait(tries)).await;
        }
    }
}
