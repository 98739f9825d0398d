//! How long `POST /tasks` takes, over a real socket:
//! `cargo run --release -p lavra-web --example latency -- lavra.duckdb` (or a `postgres://` URL).

use std::time::{Duration, Instant};

use lavra_db::{Database, Schema, Target, migrate};
use lavra_tasks::{MIGRATIONS, Settings, Tasks};
use lavra_web::App;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn std::error::Error + Send + Sync>;

const EACH: usize = 1000;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let _only_the_first_counts = rustls::crypto::ring::default_provider().install_default();
    let place = std::env::args().nth(1).ok_or("name a database")?;
    let target = Target::parse(&place)?;
    let database = Database::open(&target, Schema::default(), Duration::from_secs(5)).await?;
    let all = [MIGRATIONS, lavra_fleet::MIGRATIONS, lavra_web::MIGRATIONS].concat();
    migrate(&database, &all).await?;
    let tasks = Tasks::open(&database, Settings::default()).await?;
    tasks.declare(vec!["latency".into()]).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/tasks", listener.local_addr()?);
    let stop = CancellationToken::new();
    let timing = lavra_fleet::settings::Timing::default();
    let fleet = lavra_fleet::Fleet::open(&database, Box::new(|_| Ok(None)), timing)?;
    let (keys, timing) = (fleet.keys.clone(), lavra_notify::Timing::default());
    let webhooks = lavra_notify::Webhooks::open(&database, keys, timing, false)?;
    let router = lavra_web::router(App::new(tasks, database, fleet, webhooks));
    let serving = tokio::spawn(lavra_web::serve(listener, router, stop.clone()));
    for clients in [1, 4, 16, 64] {
        let start = Instant::now();
        let calling: Vec<_> = (0..clients).map(|_| tokio::spawn(call(url.clone()))).collect();
        let mut times = Vec::new();
        for caller in calling {
            times.extend(caller.await??);
        }
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let rate = times.len() as f64 / start.elapsed().as_secs_f64();
        say(&format!(
            "{clients:>3} clients: p50 {:.2?}, p99 {:.2?}, most {:.2?}, {rate:.0} a second",
            at(0.5),
            at(0.99),
            at(1.0)
        ));
    }
    stop.cancel();
    Ok(serving.await??)
}

#[expect(clippy::print_stdout, reason = "the lines on stdout are what this program is for")]
fn say(line: &str) {
    println!("{line}");
}

async fn call(url: String) -> Result<Vec<Duration>, Failed> {
    let http = reqwest::Client::new();
    let body = json!({"type": "latency", "payload": {"text": "so many words"}});
    let mut times = Vec::with_capacity(EACH);
    for _ in 0..EACH {
        let start = Instant::now();
        let answer = http.post(&url).json(&body).send().await?.error_for_status()?;
        answer.bytes().await?;
        times.push(start.elapsed());
    }
    Ok(times)
}
