//! Phases 3 and 4: the missing pages of a task, and then the truth about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Run;
use super::ask::Asked;
use super::discover::{HISTORY, missing_of, missing_pages, records_of, sizes};
use crate::error::Result;
use crate::event::Event;
use crate::machine::{Fetched, Happening};
use crate::model::{Extraction, Status, Stored, Window};
use crate::sink::Broken;
use crate::store::Written;

/// Pages beyond those under way that may wait to be stored.
const AHEAD: usize = 64;

/// What a pass over the missing pages has met.
#[derive(Default)]
struct Pass {
    /// The last total that was not the one we had.
    moved: Option<i64>,
    past_end: bool,
    given_up: i64,
    error: Option<String>,
    refused: Option<String>,
    is_lost: bool,
    is_stopped: bool,
}

impl Run {
    /// Fetches what is missing of a task that was claimed for it, until nothing is, or it cannot be
    /// had now.
    pub(super) async fn fetch(self: Arc<Self>, task: Extraction) -> Result<()> {
        let mut task = task;
        loop {
            let windows = self.windows(&task).await?;
            if self.is_history(&task) {
                let pass = Pass { refused: Some(HISTORY.to_owned()), ..Pass::default() };
                self.reconcile(task, &windows, pass).await?;
                return Ok(());
            }
            // Whoever had it last could not find them out.
            if windows.iter().any(|window| window.totals.is_none()) {
                let Some(next) = self.discover_rest(task, windows).await? else { return Ok(()) };
                task = next;
                continue;
            }
            let stored = self.stored(&task).await?;
            let pass = self.pass(&task, &windows, &stored).await?;
            if pass.is_lost {
                let id = task.task_id.clone();
                let Some(again) = self.claim(task, Happening::ClaimedToFetch, true).await? else {
                    self.tell(Event::TaskLost { task: id });
                    return Ok(());
                };
                task = again;
                continue;
            }
            let Some(next) = self.reconcile(task, &windows, pass).await? else { return Ok(()) };
            task = next;
        }
    }

    /// Asks for all missing pages of all windows, several at once.
    async fn pass(
        self: &Arc<Self>,
        task: &Extraction,
        windows: &[Window],
        stored: &BTreeMap<i64, Stored>,
    ) -> Result<Pass> {
        let page_size = self.page_size(task);
        let missing: Vec<_> = windows
            .iter()
            .map(|window| (window, missing_of(window, page_size, task.generation, stored)))
            .collect();
        let count = missing.iter().map(|(_, missing)| missing.count()).sum();
        self.tell(Event::TaskBegun { task: task.task_id.clone(), missing: count });
        let most = self.source().limits.in_flight + AHEAD;
        // All who wait for the host are woken when a place is free: they should be few.
        let turns = Arc::new(Semaphore::new(self.source().limits.in_flight * 2 + 2));
        let shared = Arc::new(task.clone());
        let mut pass = Pass::default();
        let mut under_way = JoinSet::new();
        'all: for (window, missing) in missing {
            for page in missing.pages() {
                while under_way.len() >= most {
                    if let Some(ended) = under_way.join_next().await {
                        pass.take(self, task, ended??);
                    }
                }
                if self.is_stopping() || pass.is_lost || pass.refused.is_some() {
                    break 'all;
                }
                let again = stored.contains_key(&(window.base + page));
                let (run, task) = (Arc::clone(self), Arc::clone(&shared));
                let window = window.clone();
                let turns = Arc::clone(&turns);
                under_way.spawn(async move {
                    run.fetch_page(&task, &window, page, again, &turns).await
                });
            }
        }
        while let Some(ended) = under_way.join_next().await {
            pass.take(self, task, ended??);
        }
        pass.is_stopped |= self.is_stopping();
        Ok(pass)
    }

    fn page_size(&self, task: &Extraction) -> i64 {
        self.source().series(&task.endpoint_name).map_or(1, |series| series.endpoint.page_size)
    }

    async fn fetch_page(
        &self,
        task: &Extraction,
        window: &Window,
        page: i64,
        again: bool,
        turns: &Semaphore,
    ) -> Result<Came> {
        let before = window.totals.map_or(0, |totals| totals.records);
        let turn = turns.acquire().await;
        let coming = self.sink.coming();
        let asked = self.ask(task, window, page, self.extractor.settings.attempts).await?;
        // It may still wait to be stored, and nobody waits for it any more.
        drop(coming);
        Ok(match asked {
            Asked::Page { arrival, total } => {
                let (records, bytes) = sizes(&arrival);
                let room = self.sink.room(&arrival).await;
                // Only now may another page be asked for: a store that stalls stalls the requests.
                drop(turn);
                let stored = match room {
                    Ok(room) => self.sink.put_into(room, &task.task_id, task.token, *arrival).await,
                    Err(broken) => Err(broken),
                };
                match stored {
                    Ok(Written::Applied { .. }) => {
                        let id = task.task_id.clone();
                        self.tell(Event::PageStored { task: id, records, bytes, again });
                        if total == before {
                            Came::AsPromised
                        } else {
                            Came::Moved { total, before }
                        }
                    }
                    Ok(Written::Lost) => {
                        self.lose(task.token);
                        Came::Lost
                    }
                    Err(Broken) => {
                        // Whatever else came could not be stored either.
                        self.extractor.stop.cancel();
                        Came::Stopped
                    }
                }
            }
            Asked::PastEnd => Came::PastEnd,
            Asked::GaveUp(failure) => Came::GivenUp(failure.error),
            Asked::Refused(failure) => Came::Refused(failure.error),
            Asked::Lost => Came::Lost,
            Asked::Stopped => Came::Stopped,
        })
    }

    /// Compares what is stored with what was promised, and writes the truth. A task that is to be
    /// discovered again is, and comes back.
    async fn reconcile(
        &self,
        task: Extraction,
        windows: &[Window],
        pass: Pass,
    ) -> Result<Option<Extraction>> {
        let stored = self.stored(&task).await?;
        let (page_size, generation) = (self.page_size(&task), task.generation);
        let missing = missing_pages(windows, page_size, generation, &stored);
        let promised: i64 = windows.iter().filter_map(|w| w.totals).map(|t| t.records).sum();
        let had = records_of(windows, &stored);
        let happening = if missing.is_empty() && had == promised {
            Happening::Fetched(Fetched::All)
        } else if let Some(error) = pass.refused {
            Happening::Refused { error }
        } else if pass.is_stopped {
            Happening::GivenBack { reason: None }
        } else if pass.given_up > 0 {
            let error = pass.error.unwrap_or_default();
            Happening::Fetched(Fetched::Without { pages: missing.len() as i64, error })
        } else if pass.moved.is_some() || pass.past_end {
            let by = pass.moved.map_or(promised - had, |by| by);
            Happening::Fetched(Fetched::Moved { by })
        } else {
            Happening::Fetched(Fetched::Short { by: promised - had })
        };
        let written = self
            .change(task, happening, |write| {
                if let Some(change) = &mut write.change {
                    change.missing = Some(missing);
                }
            })
            .await?;
        let Some(task) = written else { return Ok(None) };
        match task.status {
            Status::Discovering => self.discover_again(task).await,
            Status::Fetching => Ok(Some(task)),
            Status::Pending | Status::Partial | Status::Complete | Status::Failed => {
                self.tell_end(&task);
                Ok(None)
            }
        }
    }
}

/// What came of a page.
enum Came {
    AsPromised,
    Moved { total: i64, before: i64 },
    PastEnd,
    GivenUp(String),
    Refused(String),
    Lost,
    Stopped,
}

impl Pass {
    fn take(&mut self, run: &Run, task: &Extraction, came: Came) {
        match came {
            Came::AsPromised => {}
            Came::Moved { total, before } => {
                let by = total - before;
                // Told once for each total that is new.
                if self.moved.replace(by) != Some(by) {
                    let task = task.task_id.clone();
                    run.tell(Event::Drifted { task, from: before, to: total });
                }
            }
            Came::PastEnd => self.past_end = true,
            Came::GivenUp(error) => {
                self.given_up += 1;
                self.error = Some(error);
            }
            Came::Refused(error) => self.refused = Some(error),
            Came::Lost => self.is_lost = true,
            Came::Stopped => self.is_stopped = true,
        }
    }
}
