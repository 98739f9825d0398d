//! Where arrivals go to be stored: many pages in one transaction, and no more in memory than there
//! is room for. Whoever brings a page waits until it is durable, and that is the backpressure.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lavra_tasks::model::Token;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::model::ExtractionId;
use crate::store::{Arrival, Store, Write, Written};

/// The most of one transaction.
const PAGES: usize = 32;
const BYTES: usize = 16 << 20;
/// How long a transaction waits for company while more is under way: each is an fsync.
const LINGER: Duration = Duration::from_millis(100);
/// How often is looked whether something still is.
const LOOK: Duration = Duration::from_millis(5);
/// The most that waits in memory, in KB; a body that is larger takes all of it.
const ROOM: usize = 8 << 10;
/// How long a store that has trouble is tried again.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(500);

struct Item {
    task: ExtractionId,
    token: Token,
    arrival: Arrival,
    reply: oneshot::Sender<Option<Written>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sink {
    items: mpsc::Sender<Item>,
    room: Arc<Semaphore>,
    under_way: Arc<AtomicUsize>,
}

/// Something that may soon be put.
pub(crate) struct Coming(Arc<AtomicUsize>);

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Room for a body in memory, until it is stored.
pub(crate) struct Room(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

/// The store could not be written to for too long; the writer says why.
#[derive(Debug)]
pub(crate) struct Broken;

impl Sink {
    /// The sink, and its writer, which ends with an error when the store gives up, or well when
    /// nobody has the sink any more.
    pub(crate) fn start(store: Arc<dyn Store>) -> (Self, JoinHandle<Result<()>>) {
        let (items, waiting) = mpsc::channel(256);
        let under_way = Arc::new(AtomicUsize::new(0));
        let writer = tokio::spawn(write_all(store, waiting, Arc::clone(&under_way)));
        (Self { items, room: Arc::new(Semaphore::new(ROOM)), under_way }, writer)
    }

    /// Says that something is under way, until what is returned is dropped.
    pub(crate) fn coming(&self) -> Coming {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Coming(Arc::clone(&self.under_way))
    }

    /// Waits until there is room for what has arrived.
    pub(crate) async fn room(&self, arrival: &Arrival) -> Result<Room, Broken> {
        let size = arrival.body.as_ref().map_or(0, bytes::Bytes::len) / 1024 + 1;
        let room = Arc::clone(&self.room).acquire_many_owned(size.min(ROOM) as u32);
        room.await.map(Room).map_err(|_| Broken)
    }

    /// Stores an arrival when there is room; returns when it is durable, or refused.
    pub(crate) async fn put(
        &self,
        task: &ExtractionId,
        token: Token,
        arrival: Arrival,
    ) -> Result<Written, Broken> {
        let room = self.room(&arrival).await?;
        self.put_into(room, task, token, arrival).await
    }

    /// The same with the room that it has.
    pub(crate) async fn put_into(
        &self,
        room: Room,
        task: &ExtractionId,
        token: Token,
        arrival: Arrival,
    ) -> Result<Written, Broken> {
        let (reply, answer) = oneshot::channel();
        let item = Item { task: task.clone(), token, arrival, reply };
        self.items.send(item).await.map_err(|_| Broken)?;
        let written = answer.await.ok().flatten();
        drop(room);
        written.ok_or(Broken)
    }
}

/// One transaction after the other; while one is written, the next is filled.
async fn write_all(
    store: Arc<dyn Store>,
    mut waiting: mpsc::Receiver<Item>,
    under_way: Arc<AtomicUsize>,
) -> Result<()> {
    let mut before = None;
    while let Some(first) = waiting.recv().await {
        let mut bytes = size(&first);
        let mut batch = Vec::with_capacity(PAGES);
        batch.push(first);
        let until = Instant::now() + LINGER;
        while batch.len() < PAGES && bytes < BYTES {
            let Some(next) = company(&mut waiting, &under_way, until).await else { break };
            bytes += size(&next);
            batch.push(next);
        }
        ended(before.take()).await?;
        before = Some(tokio::spawn(write(Arc::clone(&store), batch)));
    }
    ended(before).await
}

async fn ended(transaction: Option<JoinHandle<Result<()>>>) -> Result<()> {
    match transaction {
        Some(transaction) => transaction.await?,
        None => Ok(()),
    }
}

/// The next item: at once, or while more is under way and until a time.
async fn company(
    waiting: &mut mpsc::Receiver<Item>,
    under_way: &AtomicUsize,
    until: Instant,
) -> Option<Item> {
    loop {
        if let Ok(item) = waiting.try_recv() {
            return Some(item);
        }
        if under_way.load(Ordering::Relaxed) == 0 || Instant::now() >= until {
            return None;
        }
        let look = until.min(Instant::now() + LOOK);
        if let Ok(item) = tokio::time::timeout_at(look, waiting.recv()).await {
            return item;
        }
    }
}

fn size(item: &Item) -> usize {
    item.arrival.body.as_ref().map_or(0, bytes::Bytes::len)
}

async fn write(store: Arc<dyn Store>, batch: Vec<Item>) -> Result<()> {
    let mut places: HashMap<(ExtractionId, Token), usize> = HashMap::new();
    let mut writes: Vec<Write> = Vec::new();
    let mut replies = Vec::with_capacity(batch.len());
    for Item { task, token, arrival, reply } in batch {
        let place = *places.entry((task.clone(), token)).or_insert_with(|| {
            writes.push(Write { task, token, change: None, arrivals: Vec::new() });
            writes.len() - 1
        });
        writes[place].arrivals.push(arrival);
        replies.push((place, reply));
    }
    let written = persist(&*store, writes).await?;
    for (place, reply) in replies {
        let _nobody_waits = reply.send(written.get(place).copied());
    }
    Ok(())
}

/// Writes, and tries again while the store has trouble that passes: a server that restarts, a disk
/// that is full. What was stored after all is found to be there.
pub(crate) async fn persist(store: &dyn Store, writes: Vec<Write>) -> Result<Vec<Written>> {
    let begun = Instant::now();
    loop {
        match store.write(writes.clone()).await {
            Err(Error::Database(error)) if error.is_transient() && begun.elapsed() < PATIENCE => {
                tracing::warn!(%error, "what was extracted is not stored yet; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}
