//! Killed at any step of a look: before it was done, and after it was done and nobody learnt of it.
//! And each step done twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use lavra_db::Clock;
use lavra_notify::model::{Webhook, WebhookId};
use lavra_notify::store::{Edit, Edited, New, Outcome, Reading, Store};
use lavra_notify::watch::{Config, Watcher};
use lavra_notify::{Error, Result};

use crate::support::{World, on_each_engine};

on_each_engine!(
    killed_at_any_step_it_tells_each_once,
    two_who_take_turns_at_every_step_tell_each_once,
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// The step was not done.
    Before,
    /// It was done.
    After,
}

/// A store whose caller dies at a step.
#[derive(Debug)]
struct Deadly {
    store: Arc<dyn Store>,
    steps: AtomicUsize,
    at: usize,
    death: Death,
}

impl Deadly {
    async fn step<T: Send>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let is_now = self.steps.fetch_add(1, Ordering::SeqCst) == self.at;
        let dead = || Err(Error::Invalid("killed".into()));
        if is_now && self.death == Death::Before {
            return dead();
        }
        let done = work.await?;
        if is_now { dead() } else { Ok(done) }
    }
}

#[async_trait]
impl Store for Deadly {
    fn clock(&self) -> &Clock {
        self.store.clock()
    }

    async fn add(&self, new: New) -> Result<Edited> {
        self.step(self.store.add(new)).await
    }

    async fn edit(&self, id: WebhookId, edit: Edit) -> Result<Edited> {
        self.step(self.store.edit(id, edit)).await
    }

    async fn remove(&self, id: WebhookId) -> Result<Edited> {
        self.step(self.store.remove(id)).await
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>> {
        self.step(self.store.webhook(id)).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>> {
        self.step(self.store.webhooks()).await
    }

    async fn note(&self, id: WebhookId, sealed: &str, outcome: &Outcome) -> Result<()> {
        self.step(self.store.note(id, sealed, outcome)).await
    }

    async fn read(&self, limit: usize) -> Result<Option<Reading>> {
        self.step(self.store.read(limit)).await
    }

    async fn told(&self, reading: &Reading) -> Result<()> {
        self.step(self.store.told(reading)).await
    }

    async fn pass_by(&self) -> Result<()> {
        self.step(self.store.pass_by()).await
    }
}

/// Small parts, so that a look has many steps.
const CONFIG: Config = Config { batch: 2, every: std::time::Duration::from_secs(1) };

async fn happens(world: &World) -> usize {
    for _ in 0..3 {
        world.mission_fails().await;
        world.task_fails("act", "it broke").await;
    }
    world.message_dies().await;
    7
}

/// Looks until a look finds nothing, for as long as an end may be held up by others.
async fn to_the_end(world: &World, expected: usize) {
    let store = world.store();
    let mut watcher = Watcher::new(&*store, &world.tasks, CONFIG);
    let begun = std::time::Instant::now();
    while world.deliveries().await.len() < expected {
        watcher.round().await.unwrap();
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "not all are told");
    }
    watcher.round().await.unwrap();
    watcher.leave().await;
}

async fn killed_at_any_step_it_tells_each_once(world: World) {
    world.webhook("first", "https://a.example", &[]).await;
    world.webhook("second", "https://b.example", &[]).await;
    let mut expected = 0;
    let mut kills = 0;
    for death in [Death::Before, Death::After] {
        for at in 0.. {
            expected += 2 * happens(&world).await;
            let store = Deadly { store: world.store(), steps: AtomicUsize::new(0), at, death };
            let mut watcher = Watcher::new(&store, &world.tasks, CONFIG);
            let ended = watcher.round().await;
            watcher.leave().await;
            to_the_end(&world, expected).await;
            assert_eq!(world.deliveries().await.len(), expected, "killed at {at}, {death:?}");
            if ended.is_ok() {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills >= 12, "only {kills} steps");
}

/// One is frozen at each step while the other does all of it, and then goes on as if nothing were.
async fn two_who_take_turns_at_every_step_tell_each_once(world: World) {
    world.webhook("ops", "https://a.example", &[]).await;
    let mut expected = 0;
    for _ in 0..5 {
        expected += happens(&world).await;
        let (first, second) = (world.store(), world.store());
        let one = first.read(2).await.unwrap().unwrap();
        let other = second.read(2).await.unwrap().unwrap();
        to_the_end(&world, expected).await;
        first.told(&one).await.unwrap();
        second.told(&other).await.unwrap();
        second.told(&other).await.unwrap();
        to_the_end(&world, expected).await;
        assert_eq!(world.deliveries().await.len(), expected);
    }
}
