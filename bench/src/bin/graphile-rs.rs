//! graphile_worker, the Rust one: batched creation, a local queue, batched completion. Complete is a
//! row that is gone.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Result;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, Worker,
    WorkerContext, WorkerOptions,
};
use peers::{Measure, connect, delays, pickups, rates, request, until_counted};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const LIB: &str = "graphile_worker 0.14.1 (Rust)";
const LEFT: &str = "SELECT count(*) FROM graphile_worker._private_jobs";

static ENTERED: OnceLock<UnboundedSender<u64>> = OnceLock::new();

#[derive(Serialize, Deserialize)]
struct Noop {
    id: u64,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(entered) = ENTERED.get() {
            let _ = entered.send(self.id);
        }
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (measure, database) = request()?;
    let worker = Arc::new(worker(&database).await?);
    let result = match measure {
        Measure::CreateComplete { n } => {
            let created = create(&worker, n).await?;
            rates(LIB, n, created, complete(worker, &database, n).await?)
        }
        Measure::Pickup => delays(LIB, &pickup(worker).await?),
    };
    println!("{result}");
    Ok(())
}

async fn worker(database: &str) -> Result<Worker> {
    let options = WorkerOptions::default()
        .database_url(database)
        .max_pg_conn(30)
        .concurrency(24)
        .poll_interval(Duration::from_millis(500))
        .schema("graphile_worker")
        .local_queue(LocalQueueConfig::default().with_size(500))
        .complete_job_batch_delay(Duration::from_millis(5))
        .define_job::<Noop>();
    Ok(options.init().await?)
}

async fn create(worker: &Worker, n: usize) -> Result<Duration> {
    let job = |id| RawJobSpec {
        identifier: "noop".into(),
        payload: serde_json::json!({ "id": id }),
        spec: JobSpec::default(),
    };
    let jobs: Vec<_> = (0..n).map(job).collect();
    let start = Instant::now();
    worker.create_utils().add_raw_jobs(&jobs).await?;
    Ok(start.elapsed())
}

async fn complete(worker: Arc<Worker>, database: &str, n: usize) -> Result<Duration> {
    let pool = connect(database, 1).await?;
    let (sender, mut entered) = unbounded_channel();
    ENTERED.get_or_init(|| sender);
    let running = worker.clone();
    let start = Instant::now();
    let run = tokio::spawn(async move { running.run().await });
    for _ in 0..n {
        entered.recv().await;
    }
    let completed = until_counted(&pool, LEFT, 0).await? - start;
    worker.request_shutdown();
    run.await??;
    Ok(completed)
}

async fn pickup(worker: Arc<Worker>) -> Result<Vec<f64>> {
    let (sender, mut entered) = unbounded_channel();
    ENTERED.get_or_init(|| sender);
    let running = worker.clone();
    let run = tokio::spawn(async move { running.run().await });
    let utils = worker.create_utils();
    let create = |id| {
        let utils = &utils;
        async move {
            utils.add_job(Noop { id }, JobSpec::default()).await?;
            Ok(())
        }
    };
    let samples = pickups(create, &mut entered).await?;
    worker.request_shutdown();
    run.await??;
    Ok(samples)
}
