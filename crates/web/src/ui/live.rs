//! Tells pages that something has happened, so that they ask for themselves again.
//!
//! One reader per process looks while somebody listens, whatever their number: at the newest entries
//! of the fleet's log, at the end of the stream of task events, and at a stamp of what neither tells.
//! What it says is small: which topics have changed, and which entries are new. Nobody can miss
//! anything by missing a message: who comes back after a pause is told that everything may have
//! changed, and asks once.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use lavra_fleet::Fleet;
use lavra_fleet::model::{LogEntry, LogId};
use lavra_fleet::store::LogFilter;
use lavra_tasks::Tasks;
use lavra_tasks::store::Cursor;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::app::Site;
use crate::problem::{Code, Problem};
use crate::serve::Served;

const LOOK_EVERY: Duration = Duration::from_millis(300);
const AFTER_TROUBLE: Duration = Duration::from_secs(2);
/// An entry has the time of its transaction's beginning, so it may come to light a little late:
/// so far back is looked again.
const LATE: SignedDuration = SignedDuration::from_secs(10);
const MOST_ENTRIES: usize = 500;
const MOST_LISTENERS: usize = 2000;
/// Messages that a listener may be behind before it is told that everything may have changed.
const BACKLOG: usize = 64;

pub(crate) fn routes() -> Router<Site> {
    Router::new().route("/ui/events", get(follow))
}

/// What is sent: the same for all.
#[derive(Clone, Debug)]
struct Message {
    id: Arc<str>,
    data: Arc<str>,
}

/// The reader, while there is one.
#[derive(Debug)]
pub(crate) struct Live {
    fleet: Fleet,
    tasks: Tasks,
    said: Arc<Mutex<Option<broadcast::Sender<Message>>>>,
}

impl Live {
    pub(crate) fn new(fleet: Fleet, tasks: Tasks) -> Self {
        Self { fleet, tasks, said: Arc::default() }
    }

    async fn listen(&self) -> Result<broadcast::Receiver<Message>, Problem> {
        let mut said = self.said.lock().await;
        if let Some(sender) = &*said {
            if sender.receiver_count() >= MOST_LISTENERS {
                let detail = "too many pages listen already: they are refreshed all the same";
                return Err(Problem::new(Code::TooManyListeners, detail));
            }
            return Ok(sender.subscribe());
        }
        let look = Look::begin(self.fleet.clone(), self.tasks.clone()).await?;
        let (sender, receiver) = broadcast::channel(BACKLOG);
        tokio::spawn(look.and_say(sender.clone(), Arc::clone(&self.said)));
        *said = Some(sender);
        Ok(receiver)
    }
}

/// What was there at the last look.
struct Look {
    fleet: Fleet,
    tasks: Tasks,
    stamp: String,
    tasks_end: Cursor,
    newest: Timestamp,
    /// Entries of the last moments that were told.
    told: HashSet<LogId>,
    count: u64,
}

impl Look {
    async fn begin(fleet: Fleet, tasks: Tasks) -> Result<Self, Problem> {
        let stamp = fleet.store.stamp().await?;
        let tasks_end = tasks.store().stream_end().await?;
        let newest = fleet.store.clock().now();
        let mut look =
            Self { fleet, tasks, stamp, tasks_end, newest, told: HashSet::new(), count: 0 };
        look.entries().await?;
        Ok(look)
    }

    /// Entries that were not told yet.
    async fn entries(&mut self) -> lavra_fleet::Result<Vec<LogEntry>> {
        let since = self.newest.saturating_sub(LATE).unwrap_or(self.newest);
        let filter = LogFilter { since: Some(since), limit: MOST_ENTRIES, ..LogFilter::default() };
        let mut found = self.fleet.store.log(&filter).await?;
        if let Some(entry) = found.first() {
            self.newest = self.newest.max(entry.timestamp);
        }
        let seen: HashSet<LogId> = found.iter().map(|entry| entry.id.clone()).collect();
        found.retain(|entry| !self.told.contains(&entry.id));
        self.told = seen;
        found.reverse();
        Ok(found)
    }

    /// What has changed since the last look, if anything has.
    async fn again(&mut self) -> Result<Option<Message>, Problem> {
        let mut topics: Vec<&'static str> = Vec::new();
        let entries = self.entries().await?;
        let stamp = self.fleet.store.stamp().await?;
        if !entries.is_empty() || stamp != self.stamp {
            topics.extend(["missions", "fleet"]);
            self.stamp = stamp;
        }
        let end = self.tasks.store().stream_end().await?;
        if end != self.tasks_end {
            topics.extend(["tasks", "extractions"]);
            self.tasks_end = end;
        }
        if topics.is_empty() {
            return Ok(None);
        }
        self.count += 1;
        let entries: Vec<_> = entries
            .iter()
            .map(|it| json!({ "mission": it.mission_id, "event": it.event, "at": it.timestamp }))
            .collect();
        let id = format!("{}-{}", self.newest.as_microsecond(), self.count);
        let data = json!({ "topics": topics, "entries": entries }).to_string();
        Ok(Some(Message { id: id.into(), data: data.into() }))
    }

    /// Looks and says until nobody listens any more.
    async fn and_say(
        mut self,
        sender: broadcast::Sender<Message>,
        said: Arc<Mutex<Option<broadcast::Sender<Message>>>>,
    ) {
        loop {
            if sender.receiver_count() == 0 {
                // Under the lock nobody can join between the look and the end.
                let mut said = said.lock().await;
                if sender.receiver_count() == 0 {
                    *said = None;
                    return;
                }
            }
            let wait = match self.again().await {
                Ok(message) => {
                    if let Some(message) = message {
                        let _nobody_listens = sender.send(message);
                    }
                    LOOK_EVERY
                }
                Err(problem) => {
                    tracing::warn!(reason = problem.detail(), "the pages wait for the database");
                    AFTER_TROUBLE
                }
            };
            tokio::time::sleep(wait).await;
        }
    }
}

/// Something, and nobody knows what.
fn anything() -> Event {
    Event::default().event("change").data(r#"{"topics":["all"],"entries":[]}"#)
}

async fn follow(
    State(live): State<Arc<Live>>,
    headers: HeaderMap,
    served: Served,
) -> Result<Response, Problem> {
    let messages = live.listen().await?;
    let resumes = headers.contains_key("last-event-id");
    // Who comes back may have missed something; who comes for the first time has a fresh page.
    let first = if resumes { anything() } else { Event::default().comment("here") };
    let following = stream::unfold(messages, |mut messages| async {
        let event = match messages.recv().await {
            Ok(message) => Event::default().event("change").id(&*message.id).data(&*message.data),
            Err(RecvError::Lagged(_)) => anything(),
            Err(RecvError::Closed) => return None,
        };
        Some((event, messages))
    });
    let events = stream::once(async { first }).chain(following).map(Ok::<_, Infallible>);
    let events = events.take_until(served.stop.clone().cancelled_owned());
    let sse = Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)));
    Ok(([("x-accel-buffering", "no")], sse).into_response())
}
