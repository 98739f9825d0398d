//! Wake-ups: an in-process bell, and a PostgreSQL notification for other processes.
//!
//! A notification is a hint and may be lost. It goes out with the commit of a creation when none
//! has for a moment; else after it, at most every millisecond, because each takes a lock
//! that all commits of the server share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lavra_db::tokio_postgres::types::Type;
use lavra_db::{Database, Pg};
use tokio::sync::{Notify, watch};

const CHANNEL: &str = "kodus_workflow_tasks";
pub(crate) const WORK: &str = "work";
const CANCEL: &str = "cancel";
const AT_MOST_EVERY: Duration = Duration::from_millis(1);

/// The channel of a database's notifications.
pub(crate) fn channel(pg: &Pg) -> String {
    pg.schema().apply(CHANNEL).into_owned()
}

/// Rings when something waits, or was cancelled, for anyone in this process and beyond.
#[derive(Clone, Debug)]
pub(crate) struct Bell {
    work: watch::Sender<u64>,
    cancel: watch::Sender<u64>,
    outside: Option<Outside>,
}

#[derive(Clone, Debug)]
struct Outside {
    work: Arc<Notify>,
    cancel: Arc<Notify>,
    live: Arc<AtomicBool>,
    /// When one last rang with a commit.
    rang: Arc<Mutex<Option<Instant>>>,
}

impl Bell {
    /// Must be called in a runtime: with PostgreSQL it speaks and listens in the background.
    pub(crate) fn new(database: &Database) -> Self {
        let (work, _) = watch::channel(0);
        let (cancel, _) = watch::channel(0);
        let outside = match database {
            Database::Duck(_) => None,
            Database::Postgres(pg) => Some(Outside::start(pg, &work, &cancel)),
        };
        Self { work, cancel, outside }
    }

    pub(crate) fn work(&self) {
        self.work_here();
        if let Some(outside) = &self.outside {
            outside.work.notify_one();
        }
    }

    /// The same for this process alone: the others have been told.
    pub(crate) fn work_here(&self) {
        self.work.send_modify(|count| *count += 1);
    }

    /// Whether a commit that is about to happen should ring for the others itself.
    pub(crate) fn rings_with_commit(&self) -> bool {
        let Some(outside) = &self.outside else { return false };
        let mut rang = outside.rang.lock().unwrap_or_else(PoisonError::into_inner);
        let may = rang.is_none_or(|rang| rang.elapsed() >= AT_MOST_EVERY);
        if may {
            *rang = Some(Instant::now());
        }
        may
    }

    pub(crate) fn cancel(&self) {
        self.cancel.send_modify(|count| *count += 1);
        if let Some(outside) = &self.outside {
            outside.cancel.notify_one();
        }
    }

    /// Whether everything that others do is known to be heard here.
    pub(crate) fn hears_all(&self) -> bool {
        self.outside.as_ref().is_none_or(|outside| outside.live.load(Ordering::Relaxed))
    }

    pub(crate) fn on_work(&self) -> Ears {
        Ears(self.work.subscribe())
    }

    pub(crate) fn on_cancel(&self) -> Ears {
        Ears(self.cancel.subscribe())
    }
}

/// One who listens to a bell.
#[derive(Debug)]
pub struct Ears(watch::Receiver<u64>);

impl Ears {
    /// Returns when the bell has rung since the last call.
    pub async fn rung(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Forgets what has rung so far: the caller is about to look anyway.
    pub fn forget(&mut self) {
        self.0.mark_unchanged();
    }
}

impl Outside {
    fn start(pg: &Pg, work: &watch::Sender<u64>, cancel: &watch::Sender<u64>) -> Self {
        let outside = Self {
            work: Arc::new(Notify::new()),
            cancel: Arc::new(Notify::new()),
            live: Arc::new(AtomicBool::new(false)),
            rang: Arc::default(),
        };
        speak(pg.clone(), WORK, Arc::clone(&outside.work));
        speak(pg.clone(), CANCEL, Arc::clone(&outside.cancel));
        listen(pg, work.clone(), cancel.clone(), Arc::clone(&outside.live));
        outside
    }
}

fn speak(pg: Pg, word: &'static str, asked: Arc<Notify>) {
    let channel = channel(&pg);
    tokio::spawn(async move {
        loop {
            asked.notified().await;
            let params = [(&channel as _, Type::TEXT), (&word as _, Type::TEXT)];
            let sent = pg.query("notify", "SELECT pg_notify($1, $2)", &params).await;
            if let Err(error) = sent {
                tracing::debug!(%error, "a notification was not sent");
            }
            tokio::time::sleep(AT_MOST_EVERY).await;
        }
    });
}

fn listen(pg: &Pg, work: watch::Sender<u64>, cancel: watch::Sender<u64>, live: Arc<AtomicBool>) {
    let mut listener = pg.listen(CHANNEL);
    tokio::spawn(async move {
        let mut look = tokio::time::interval(Duration::from_millis(500));
        loop {
            tokio::select! {
                heard = listener.next() => match heard.as_deref() {
                    Some(WORK) => work.send_modify(|count| *count += 1),
                    Some(CANCEL) => cancel.send_modify(|count| *count += 1),
                    // A new connection: something may have been missed.
                    Some(_) => {
                        work.send_modify(|count| *count += 1);
                        cancel.send_modify(|count| *count += 1);
                    }
                    None => return,
                },
                _ = look.tick() => {}
            }
            live.store(listener.is_live(), Ordering::Relaxed);
        }
    });
}
