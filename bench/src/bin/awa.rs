//! awa: its append-only queue storage, COPY to create, no deadlines (its documented short path), a
//! large worker pool. Complete is what its terminal tables hold.

use std::time::{Duration, Instant};

use anyhow::Result;
use awa::{Client, InsertOpts, JobArgs, JobResult, QueueConfig, QueueStorage, QueueStorageConfig};
use peers::{Measure, connect, delays, pickups, rates, request, until_counted};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const LIB: &str = "awa 0.6.9";
const CHUNK: usize = 5000;
const DONE: &str = "SELECT (SELECT count(*) FROM awa.done_entries)
    + (SELECT coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches)::bigint
    + (SELECT coalesce(sum(pruned_completed_count), 0) FROM awa.queue_terminal_rollups)::bigint";

#[derive(Debug, Serialize, Deserialize)]
struct Noop {
    id: u64,
}

impl JobArgs for Noop {
    fn kind() -> &'static str {
        "noop"
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (measure, database) = request()?;
    let pool = connect(&database, 40).await?;
    awa::migrations::run(&pool).await?;
    let storage = QueueStorage::new(QueueStorageConfig::default())?;
    storage.install(&pool).await?;
    let result = match measure {
        Measure::CreateComplete { n } => {
            let created = create(&pool, &storage, n).await?;
            rates(LIB, n, created, complete(&pool, n).await?)
        }
        Measure::Pickup => delays(LIB, &pickup(&pool).await?),
    };
    println!("{result}");
    Ok(())
}

fn options() -> InsertOpts {
    InsertOpts { queue: "bench".into(), ..Default::default() }
}

fn client(pool: &PgPool, entered: UnboundedSender<u64>) -> Result<Client> {
    let queue =
        QueueConfig { max_workers: 256, deadline_duration: Duration::ZERO, ..Default::default() };
    let client = Client::builder(pool.clone())
        .queue("bench", queue)
        .register::<Noop, _, _>(move |job: Noop, _context| {
            let _ = entered.send(job.id);
            async { Ok(JobResult::Completed) }
        })
        .build()?;
    Ok(client)
}

async fn create(pool: &PgPool, storage: &QueueStorage, n: usize) -> Result<Duration> {
    let start = Instant::now();
    for first in (0..n).step_by(CHUNK) {
        let jobs: Result<Vec<_>, _> = (first..n.min(first + CHUNK))
            .map(|id| awa::insert::params_with(&Noop { id: id as u64 }, options()))
            .collect();
        storage.enqueue_params_copy(pool, &jobs?).await?;
    }
    Ok(start.elapsed())
}

async fn complete(pool: &PgPool, n: usize) -> Result<Duration> {
    let (sender, mut entered) = unbounded_channel();
    let client = client(pool, sender)?;
    let start = Instant::now();
    client.start().await?;
    for _ in 0..n {
        entered.recv().await;
    }
    let completed = until_counted(pool, DONE, n).await? - start;
    client.shutdown(Duration::from_secs(5)).await;
    Ok(completed)
}

async fn pickup(pool: &PgPool) -> Result<Vec<f64>> {
    let (sender, mut entered) = unbounded_channel();
    let client = client(pool, sender)?;
    client.start().await?;
    let create = |id| async move {
        awa::insert_with(pool, &Noop { id }, options()).await?;
        Ok(())
    };
    let samples = pickups(create, &mut entered).await?;
    client.shutdown(Duration::from_secs(5)).await;
    Ok(samples)
}
