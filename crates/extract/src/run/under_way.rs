//! Tasks that are worked on in this process, by the endpoint that they ask.
//!
//! An endpoint that is away is waited for by those that were at work on it, and they find out when
//! it is back. They are not counted among those at work, and no others are taken for it meanwhile:
//! so they keep nobody else from working.

use std::collections::{BTreeSet, HashMap};

use tokio::task::{Id, JoinSet};

use super::LOOK;
use crate::error::Result;

#[derive(Default)]
pub(super) struct UnderWay {
    tasks: JoinSet<Result<()>>,
    endpoints: HashMap<Id, String>,
}

impl UnderWay {
    pub(super) fn spawn<F>(&mut self, endpoint: String, work: F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let id = self.tasks.spawn(work).id();
        self.endpoints.insert(id, endpoint);
    }

    /// The endpoints that are waited for.
    pub(super) fn away(&self, is_away: impl Fn(&str) -> bool) -> BTreeSet<String> {
        self.endpoints.values().filter(|endpoint| is_away(endpoint)).cloned().collect()
    }

    /// How many do not wait for an endpoint.
    pub(super) fn at_work(&self, away: &BTreeSet<String>) -> usize {
        self.endpoints.values().filter(|endpoint| !away.contains(*endpoint)).count()
    }

    /// Waits until one has ended, or others are away than `before`.
    pub(super) async fn change(
        &mut self,
        before: &BTreeSet<String>,
        is_away: impl Fn(&str) -> bool,
    ) -> Result<()> {
        loop {
            tokio::select! {
                biased;
                ended = self.end() => return ended.unwrap_or(Ok(())),
                () = tokio::time::sleep(LOOK) => {}
            }
            if self.away(&is_away) != *before {
                return Ok(());
            }
        }
    }

    /// Waits until all have ended.
    pub(super) async fn drain(mut self) -> Result<()> {
        while let Some(ended) = self.end().await {
            ended?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Option<Result<()>> {
        let (id, ended) = match self.tasks.join_next_with_id().await? {
            Ok((id, ended)) => (id, ended),
            Err(error) => (error.id(), Err(error.into())),
        };
        self.endpoints.remove(&id);
        Some(ended)
    }
}
