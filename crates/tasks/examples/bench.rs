//! Lavra's side of `cargo xtask bench tasks`: prints one JSON line per measurement.
//!
//! Completions are counted in the table, by their status; never by handler entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lavra_db::{Database, Schema, Target, migrate};
use lavra_tasks::model::Status;
use lavra_tasks::store::ListFilter;
use lavra_tasks::{
    Broker, BrokerConfig, Context, Handler, MIGRATIONS, NewTask, Outcome, Policy, Registry, Runner,
    RunnerConfig, Settings, Tasks,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn std::error::Error + Send + Sync>;

const BATCH: usize = 5000;
const CREATORS: usize = 2;

#[derive(Clone, Default)]
struct Noop {
    seen: watch::Sender<u64>,
    runs: Arc<AtomicUsize>,
}

impl Handler for Noop {
    type Input = Value;

    const KIND: &'static str = "noop";

    async fn run(&self, input: Value, _context: Context) -> Outcome {
        let id = input.get("id").and_then(Value::as_u64).unwrap_or_default();
        self.seen.send_replace(id);
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(Some(json!({ "ok": true })))
    }
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut words = std::env::args().skip(1);
    let command = words.next().ok_or("which measurement?")?;
    let (mut database, mut broker, mut n) = (None, None, 20_000);
    while let Some(flag) = words.next() {
        let value = words.next().ok_or("a flag without its value")?;
        match flag.as_str() {
            "--database" => database = Some(value),
            "--broker" => broker = Some(value),
            "--n" => n = value.parse()?,
            other => return Err(format!("unknown flag {other}").into()),
        }
    }
    let target = Target::parse(&database.ok_or("--database is missing")?)?;
    let open = async || -> Result<Database, Failed> {
        let database = Database::open(&target, Schema::default(), Duration::from_secs(5)).await?;
        migrate(&database, MIGRATIONS).await?;
        Ok(database)
    };
    let line = match command.as_str() {
        "create-complete" => create_complete(open().await?, n).await?,
        // Two engines that share nothing but the server, as a creator and a runner would.
        "pickup" => pickup(open().await?, open().await?).await?,
        "rabbit" => rabbit(open().await?, &broker.ok_or("--broker is missing")?, n).await?,
        other => return Err(format!("unknown measurement {other}").into()),
    };
    emit(&line);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the line on stdout is what this program is for")]
fn emit(line: &Value) {
    println!("{line}");
}

fn registry(noop: &Noop) -> Registry {
    Registry::default().with(noop.clone(), Policy::default())
}

async fn tasks(
    database: &Database,
    registry: &Registry,
    broker: Option<Broker>,
) -> Result<Tasks, Failed> {
    let settings = Settings { broker, ..Settings::default() }.knowing(registry);
    Ok(Tasks::open(database, settings).await?)
}

/// Batches from a few creators at once; the time until all of it is committed.
async fn create(tasks: &Tasks, n: usize) -> Result<Duration, Failed> {
    let begun = Instant::now();
    let mut creators = Vec::new();
    for creator in 0..CREATORS {
        let tasks = tasks.clone();
        creators.push(tokio::spawn(async move {
            for start in (creator * BATCH..n).step_by(CREATORS * BATCH) {
                let requests = (start..n.min(start + BATCH)).map(|id| NewTask {
                    kind: "noop".into(),
                    payload: json!({ "id": id }),
                    ..NewTask::default()
                });
                tasks.create_all(requests.collect()).await?;
            }
            Ok::<(), lavra_tasks::Error>(())
        }));
    }
    for creator in creators {
        creator.await??;
    }
    Ok(begun.elapsed())
}

/// The time until the table says that all are completed. It is asked only when all have run: the
/// question is not free.
async fn completed(database: &Database, noop: &Noop, n: usize) -> Result<Duration, Failed> {
    let begun = Instant::now();
    while noop.runs.load(Ordering::Relaxed) < n {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    loop {
        let done = match database {
            Database::Postgres(pg) => {
                let sql = "SELECT NOT EXISTS (SELECT 1 FROM kodus_workflow.tasks
                                              WHERE status IN ('PENDING', 'IN_PROGRESS'))";
                pg.query("count", sql, &[]).await?[0].try_get(0)?
            }
            Database::Duck(_) => {
                let store = lavra_tasks::store(database).await?;
                let filter =
                    ListFilter { status: Some(Status::Completed), limit: n, ..Default::default() };
                store.list(filter).await?.len() >= n
            }
        };
        if done {
            return Ok(begun.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn create_complete(database: Database, n: usize) -> Result<Value, Failed> {
    let noop = Noop::default();
    let registry = registry(&noop);
    let tasks = tasks(&database, &registry, None).await?;
    let creating = create(&tasks, n).await?;
    let stop = CancellationToken::new();
    let runner = Runner::new(tasks, registry, RunnerConfig::default());
    let running = tokio::spawn(runner.run(stop.clone()));
    let completing = completed(&database, &noop, n).await?;
    stop.cancel();
    running.await?;
    Ok(json!({
        "lib": "lavra", "n": n,
        "create_per_s": (n as f64 / creating.as_secs_f64()).round(),
        "complete_per_s": (n as f64 / completing.as_secs_f64()).round(),
    }))
}

async fn pickup(creating: Database, running: Database) -> Result<Value, Failed> {
    let noop = Noop::default();
    let registry = registry(&noop);
    let creator = tasks(&creating, &registry, None).await?;
    let stop = CancellationToken::new();
    let theirs = tasks(&running, &registry, None).await?;
    let runner =
        tokio::spawn(Runner::new(theirs, registry, RunnerConfig::default()).run(stop.clone()));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut seen = noop.seen.subscribe();
    let mut millis = Vec::new();
    for id in 1..=300_u64 {
        let begun = Instant::now();
        let task =
            NewTask { kind: "noop".into(), payload: json!({ "id": id }), ..NewTask::default() };
        creator.create(task).await?;
        seen.wait_for(|seen| *seen == id).await?;
        if id > 50 {
            millis.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
    }
    stop.cancel();
    runner.await?;
    millis.sort_by(f64::total_cmp);
    Ok(json!({
        "lib": "lavra",
        "pickup_p50_ms": millis[millis.len() / 2],
        "pickup_p99_ms": millis[millis.len() * 99 / 100],
    }))
}

/// Whether the outbox is empty: the newest row goes last, and is found at once.
async fn is_delivered(database: &Database) -> Result<bool, Failed> {
    let Database::Postgres(pg) = database else { return Err("only on PostgreSQL".into()) };
    let sql = "SELECT 1 FROM kodus_workflow.task_outbox ORDER BY id DESC LIMIT 1";
    Ok(pg.query("look", sql, &[]).await?.is_empty())
}

/// Delivery: tasks were made while the broker was away; from the moment that it is there until
/// it has confirmed a message of each and the outbox is empty. Then the completions, with those
/// messages as the wake-up.
async fn rabbit(database: Database, url: &str, n: usize) -> Result<Value, Failed> {
    let noop = Noop::default();
    let registry = registry(&noop);
    let broker = Broker::new(BrokerConfig::new(url));
    let tasks = tasks(&database, &registry, Some(broker.clone())).await?;
    create(&tasks, n).await?;
    let begun = Instant::now();
    let stop = CancellationToken::new();
    let publishing = tokio::spawn({
        let (broker, tasks, stop) = (broker.clone(), tasks.clone(), stop.clone());
        async move { broker.run(tasks, stop).await }
    });
    while !is_delivered(&database).await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let delivering = begun.elapsed();
    let runner = Runner::new(tasks, registry, RunnerConfig::default());
    let running = tokio::spawn(runner.run(stop.clone()));
    let completing = completed(&database, &noop, n).await?;
    stop.cancel();
    running.await?;
    publishing.await?;
    Ok(json!({
        "lib": "lavra", "n": n,
        "deliver_per_s": (n as f64 / delivering.as_secs_f64()).round(),
        "complete_per_s": (n as f64 / completing.as_secs_f64()).round(),
    }))
}
