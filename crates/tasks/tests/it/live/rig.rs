//! A service with a handler that does as its payload says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lavra_tasks::model::{Event, Status, Task, TaskId};
use lavra_tasks::{
    Backoff, Broker, Context, Failure, Handler, NewTask, Outcome, Policy, Registry, Runner,
    RunnerConfig, Settings, Tasks,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::World;

/// The type `act`.
#[derive(Debug, Default)]
pub(super) struct Act {
    pub(super) runs: Arc<AtomicUsize>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub(super) enum Order {
    Complete,
    Fail,
    FailOnce,
    FailForGood,
    Panic,
    StopUntold,
    Sleep {
        seconds: f64,
    },
    /// Sleeps without ever looking whether it should stop.
    SleepDeaf {
        seconds: f64,
    },
    Report {
        steps: Vec<i16>,
    },
    Unstorable,
}

impl Handler for Act {
    type Input = Order;

    const KIND: &'static str = "act";

    async fn run(&self, order: Order, context: Context) -> Outcome {
        self.runs.fetch_add(1, Ordering::SeqCst);
        match order {
            Order::Complete => Ok(Some(json!({ "attempt": context.attempt() }))),
            Order::Fail => Err(Failure::retry("it failed")),
            Order::FailOnce if context.attempt() == 1 => Err(Failure::retry("it failed")),
            Order::FailOnce => Ok(None),
            Order::FailForGood => Err(Failure::permanent("it cannot work")),
            Order::Panic => panic!("it panicked"),
            Order::StopUntold => Err(Failure::Stopped),
            Order::Sleep { seconds } => tokio::select! {
                () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => Ok(None),
                _ = context.stopped() => Err(Failure::Stopped),
            },
            Order::SleepDeaf { seconds } => {
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                Ok(None)
            }
            Order::Report { steps } => {
                for step in steps {
                    context.progress(step, format!("At {step}"));
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                context.step("Nearly done", json!({ "pages": 7 }));
                context.metadata(json!({ "seen": true }));
                Ok(None)
            }
            Order::Unstorable => Ok(Some(json!({ "text": "a\0b" }))),
        }
    }
}

/// A service, and the runners started on it.
pub(super) struct Rig {
    pub(super) tasks: Tasks,
    pub(super) runs: Arc<AtomicUsize>,
    registry: Registry,
    stop: CancellationToken,
    running: Vec<JoinHandle<()>>,
}

impl Rig {
    pub(super) async fn new(world: &World) -> Self {
        Self::with(world, Policy::default(), None).await
    }

    pub(super) async fn with(world: &World, policy: Policy, broker: Option<Broker>) -> Self {
        Self::on(world.database(), policy, broker).await
    }

    pub(super) async fn on(
        database: &lavra_db::Database,
        policy: Policy,
        broker: Option<Broker>,
    ) -> Self {
        let act = Act::default();
        let runs = Arc::clone(&act.runs);
        let registry = Registry::default().with(act, policy);
        let first = Duration::from_millis(20);
        let backoff = Backoff { first, longest: Duration::from_secs(1) };
        let settings = Settings { broker, backoff, ..Settings::default() }.knowing(&registry);
        let tasks = Tasks::open(database, settings).await.unwrap();
        Self { tasks, runs, registry, stop: CancellationToken::new(), running: Vec::new() }
    }

    pub(super) fn run(&mut self, config: RunnerConfig) {
        let runner = Runner::new(self.tasks.clone(), self.registry.clone(), config);
        let stop = self.stop.clone();
        self.running.push(tokio::spawn(runner.run(stop)));
    }

    pub(super) fn spawn(&mut self, part: impl FnOnce(Tasks, CancellationToken) -> JoinHandle<()>) {
        self.running.push(part(self.tasks.clone(), self.stop.clone()));
    }

    pub(super) async fn stop(mut self) -> Tasks {
        self.stop.cancel();
        for part in self.running.drain(..) {
            part.await.unwrap();
        }
        self.tasks.clone()
    }

    pub(super) async fn order(&self, payload: Value) -> TaskId {
        let task = NewTask { kind: "act".into(), payload, ..NewTask::default() };
        self.tasks.create(task).await.unwrap().id
    }

    pub(super) async fn until(&self, id: TaskId, what: impl Fn(&Task) -> bool) -> Task {
        until(&self.tasks, id, Duration::from_secs(20), what).await
    }

    pub(super) async fn until_status(&self, id: TaskId, status: Status) -> Task {
        self.until(id, |task| task.status == status).await
    }

    pub(super) async fn history(&self, id: TaskId) -> Vec<Event> {
        self.tasks.store().events_since(id, -1, 10_000).await.unwrap()
    }
}

pub(super) async fn until(
    tasks: &Tasks,
    id: TaskId,
    patience: Duration,
    what: impl Fn(&Task) -> bool,
) -> Task {
    let begun = Instant::now();
    loop {
        if let Ok(task) = tasks.task(id).await {
            if what(&task) {
                return task;
            }
            assert!(begun.elapsed() < patience, "it never came: {task:?}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(super) fn actions(events: &[Event]) -> Vec<String> {
    let action = |event: &Event| {
        let detail = event.detail.as_ref()?;
        Some(detail.get("action")?.as_str()?.to_owned())
    };
    events.iter().map(|event| action(event).unwrap_or_default()).collect()
}

/// Versions without gaps from 0, times that grow.
pub(super) fn assert_gapless(events: &[Event]) {
    let versions: Vec<i32> = events.iter().map(|event| event.version).collect();
    let expected: Vec<i32> = (0..versions.len() as i32).collect();
    assert_eq!(versions, expected, "versions with gaps: {events:#?}");
    let grows = events.windows(2).all(|pair| pair[0].created_at < pair[1].created_at);
    assert!(grows, "times that do not grow: {events:#?}");
}
