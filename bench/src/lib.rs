//! What the drivers of the peers share: the command line that `cargo xtask bench` speaks, the clock
//! that stops when the database says so, and the line of JSON with the result.
//!
//! ```text
//! DRIVER create-complete --n 20000 --database postgres://…   create first, then complete
//! DRIVER pickup --database postgres://…                      from creation to the first line of the handler
//! ```

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::sync::mpsc::UnboundedReceiver;

/// Samples taken of the pick-up, after as many again as needed to be warm.
pub const PICKUPS: usize = 300;
pub const WARM_UP: usize = 50;

/// What to measure.
#[derive(Debug)]
pub enum Measure {
    CreateComplete { n: usize },
    Pickup,
}

/// Reads the command line.
pub fn request() -> Result<(Measure, String)> {
    let mut args = std::env::args().skip(1);
    let command = args.next().context("say create-complete or pickup")?;
    let (mut n, mut database) = (None, None);
    while let Some(flag) = args.next() {
        let value = args.next().with_context(|| format!("{flag} wants a value"))?;
        match flag.as_str() {
            "--n" => n = Some(value.parse()?),
            "--database" => database = Some(value),
            other => bail!("unknown option {other}"),
        }
    }
    let measure = match command.as_str() {
        "create-complete" => Measure::CreateComplete { n: n.context("create-complete wants --n")? },
        "pickup" => Measure::Pickup,
        other => bail!("unknown command {other}"),
    };
    Ok((measure, database.context("--database is missing")?))
}

/// A pool for what the driver itself asks.
pub async fn connect(database: &str, connections: u32) -> Result<PgPool> {
    let options = PgPoolOptions::new().max_connections(connections);
    options.connect(database).await.context("cannot connect to PostgreSQL")
}

/// Waits until `query` counts `n`, and gives the time that the deciding look at the database began.
pub async fn until_counted(pool: &PgPool, query: &str, n: usize) -> Result<Instant> {
    loop {
        let look = Instant::now();
        let counted: i64 = sqlx::query_scalar(query).fetch_one(pool).await?;
        if counted == n as i64 {
            return Ok(look);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Creates one task after the other and times each until its handler has it.
pub async fn pickups<F: Future<Output = Result<()>>>(
    mut create: impl FnMut(u64) -> F,
    entered: &mut UnboundedReceiver<u64>,
) -> Result<Vec<f64>> {
    let mut samples = Vec::with_capacity(PICKUPS);
    for id in 0..(WARM_UP + PICKUPS) as u64 {
        let start = Instant::now();
        create(id).await?;
        while entered.recv().await.context("the handler is gone")? != id {}
        if id >= WARM_UP as u64 {
            samples.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples)
}

/// The result of `create-complete`.
pub fn rates(lib: &str, n: usize, created: Duration, completed: Duration) -> Value {
    let per_second = |time: Duration| (n as f64 / time.as_secs_f64()).round();
    json!({ "lib": lib, "n": n, "create_per_s": per_second(created), "complete_per_s": per_second(completed) })
}

/// The result of `pickup`, from sorted samples.
pub fn delays(lib: &str, samples: &[f64]) -> Value {
    json!({ "lib": lib, "pickup_p50_ms": samples[samples.len() / 2], "pickup_p99_ms": samples[samples.len() * 99 / 100] })
}
