//! One reader of the stream of all events, for any number of listeners.
//!
//! While somebody listens, one task reads the store and broadcasts what is new; nobody else polls
//! for it. A listener that resumes, or that fell behind the broadcast, reads the store from where
//! it was until it has caught up. Nothing is lost or doubled in between: the order of events is
//! total, the store shows only those before which nothing can appear any more, and a listener
//! subscribes first, reads second, and drops from the broadcast what it has had.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse;
use lavra_tasks::model::Event;
use lavra_tasks::store::Cursor;
use lavra_tasks::{Result, Tasks};
use tokio::sync::Mutex;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::events::Source;
use crate::wire;

const LOOK_EVERY: Duration = Duration::from_millis(250);
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
const PAGE: usize = 500;
/// Pages that a listener may be behind before it has to read the store itself.
const BACKLOG: usize = 64;

type Page = Arc<[Entry]>;

/// The reader, while there is one.
#[derive(Debug)]
pub(crate) struct Feed {
    tasks: Tasks,
    backlog: usize,
    live: Arc<Mutex<Option<broadcast::Sender<Page>>>>,
}

/// An event, made ready once for all listeners.
#[derive(Clone, Debug)]
struct Entry {
    place: Cursor,
    data: Arc<str>,
}

impl From<Event> for Entry {
    fn from(event: Event) -> Self {
        let place = Cursor { transaction: event.transaction, event: event.id };
        let data = serde_json::to_string(&wire::Event::from(event)).unwrap_or_default();
        Self { place, data: data.into() }
    }
}

/// What a listener shows to resume after this place.
fn id(place: Cursor) -> String {
    format!("{}:{}", place.transaction, place.event)
}

async fn read(tasks: &Tasks, after: Cursor) -> Result<Vec<Entry>> {
    let events = tasks.store().stream_since(after, PAGE).await?;
    Ok(events.into_iter().map(Entry::from).collect())
}

impl Feed {
    pub(crate) fn new(tasks: Tasks) -> Self {
        Self { tasks, backlog: BACKLOG, live: Arc::default() }
    }

    /// Listens from after `cursor`, or from now on.
    pub(crate) async fn listen(&self, cursor: Option<Cursor>) -> Result<Listener> {
        let pages = self.subscribe().await?;
        let at = match cursor {
            Some(cursor) => cursor,
            None => self.tasks.store().stream_end().await?,
        };
        let tasks = self.tasks.clone();
        let ready = VecDeque::new();
        Ok(Listener { tasks, pages, at, ready, is_new: cursor.is_none(), is_behind: true })
    }

    /// Joins the broadcast, and starts its reader if nobody listened until now.
    async fn subscribe(&self) -> Result<broadcast::Receiver<Page>> {
        let mut live = self.live.lock().await;
        if let Some(sender) = &*live {
            return Ok(sender.subscribe());
        }
        let from = self.tasks.store().stream_end().await?;
        let (sender, receiver) = broadcast::channel(self.backlog);
        tokio::spawn(broadcast_from(
            from,
            self.tasks.clone(),
            sender.clone(),
            Arc::clone(&self.live),
        ));
        *live = Some(sender);
        Ok(receiver)
    }
}

/// Reads and broadcasts until nobody listens any more.
async fn broadcast_from(
    mut at: Cursor,
    tasks: Tasks,
    sender: broadcast::Sender<Page>,
    live: Arc<Mutex<Option<broadcast::Sender<Page>>>>,
) {
    loop {
        if sender.receiver_count() == 0 {
            // Under the lock nobody can join between the look and the end.
            let mut live = live.lock().await;
            if sender.receiver_count() == 0 {
                *live = None;
                return;
            }
        }
        let wait = match read(&tasks, at).await {
            Ok(page) => {
                let full = page.len() == PAGE;
                if let Some(last) = page.last() {
                    at = last.place;
                    let _nobody_listens = sender.send(page.into());
                }
                if full { Duration::ZERO } else { LOOK_EVERY }
            }
            Err(error) => {
                tracing::warn!(%error, "the stream of events waits for the database");
                AFTER_TROUBLE
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = sender.closed() => {}
        }
    }
}

/// One who listens to all events.
pub(crate) struct Listener {
    tasks: Tasks,
    pages: broadcast::Receiver<Page>,
    /// The last event that was sent.
    at: Cursor,
    ready: VecDeque<Entry>,
    /// Has yet to be told where it began, so that it can resume from there.
    is_new: bool,
    /// Has yet to read from the store what was before the broadcast.
    is_behind: bool,
}

impl Listener {
    async fn advance(&mut self) -> Option<Entry> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                self.at = entry.place;
                return Some(entry);
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Option<()> {
        if self.is_behind {
            match read(&self.tasks, self.at).await {
                Ok(page) => {
                    self.is_behind = page.len() == PAGE;
                    self.ready.extend(page);
                }
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "a listener waits for the database");
                    tokio::time::sleep(AFTER_TROUBLE).await;
                }
                Err(error) => {
                    tracing::error!(%error, "a listener was given up");
                    return None;
                }
            }
            return Some(());
        }
        match self.pages.recv().await {
            Ok(page) => {
                self.ready.extend(page.iter().filter(|entry| entry.place > self.at).cloned());
            }
            Err(RecvError::Lagged(_)) => self.is_behind = true,
            Err(RecvError::Closed) => return None,
        }
        Some(())
    }
}

impl Source for Listener {
    async fn next(&mut self) -> Option<sse::Event> {
        if std::mem::take(&mut self.is_new) {
            return Some(sse::Event::default().id(id(self.at)));
        }
        let entry = self.advance().await?;
        Some(sse::Event::default().id(id(entry.place)).data(&entry.data))
    }
}

#[cfg(test)]
mod tests {
    use lavra_db::Schema;
    use lavra_tasks::{MIGRATIONS, NewTask, Settings};

    use super::*;

    async fn make(tasks: &Tasks, count: usize) {
        let task = NewTask { kind: "a".into(), ..NewTask::default() };
        tasks.create_all(vec![task; count]).await.unwrap();
    }

    #[tokio::test]
    async fn a_listener_that_fell_behind_the_broadcast_catches_up_from_the_store() {
        const COUNT: usize = 4 * PAGE + 17;
        let directory = tempfile::tempdir().unwrap();
        let target = lavra_db::Target::File(directory.path().join("lavra.duckdb"));
        let database = lavra_db::Database::open(&target, Schema::default(), Duration::ZERO);
        let database = database.await.unwrap();
        lavra_db::migrate(&database, MIGRATIONS).await.unwrap();
        let tasks = Tasks::open(&database, Settings::default()).await.unwrap();
        tasks.declare(vec!["a".into()]).await.unwrap();
        let feed = Feed { backlog: 2, ..Feed::new(tasks.clone()) };
        let mut slow = feed.listen(None).await.unwrap();
        let mut quick = feed.listen(None).await.unwrap();
        make(&tasks, 1).await;
        let first = slow.advance().await.unwrap();
        assert!(!slow.is_behind, "it hears the broadcast");
        make(&tasks, COUNT).await;
        let mut all = Vec::new();
        while all.len() < COUNT + 1 {
            all.push(quick.advance().await.unwrap().place);
        }
        // Until more pages have gone by than are kept for it.
        while slow.pages.len() <= feed.backlog {
            tokio::time::sleep(LOOK_EVERY / 10).await;
        }
        let mut seen = vec![first.place];
        while seen.len() < all.len() {
            seen.push(slow.advance().await.unwrap().place);
        }
        assert_eq!(seen, all);
        make(&tasks, 1).await;
        let (one, other) = (slow.advance().await.unwrap(), quick.advance().await.unwrap());
        assert_eq!((one.place, one.data), (other.place, other.data));
        drop((slow, quick));
        while feed.live.lock().await.is_some() {
            tokio::task::yield_now().await;
        }
    }
}
