//! Those who use the service meanwhile: they create, cancel and retry, and try again when nobody
//! answers, as a careful client does: with an `Idempotency-Key`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use crate::http;
use crate::random::Random;

const CLIENTS: u64 = 4;
const PAUSE: Duration = Duration::from_millis(10);

/// What the clients were promised.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) created: Vec<String>,
    pub(super) cancels: usize,
    pub(super) retries: usize,
}

pub(super) struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Sent>>,
}

impl Load {
    pub(super) fn start(servers: &[u16], seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let clients = (0..CLIENTS).map(|client| {
            let (servers, stop) = (servers.to_vec(), Arc::clone(&stop));
            let random = Random::new(seed.wrapping_mul(31).wrapping_add(client + 1));
            std::thread::spawn(move || work(&servers, client, random, &stop))
        });
        Self { clients: clients.collect(), stop }
    }

    pub(super) fn stop(self) -> Result<Sent> {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Sent::default();
        for client in self.clients {
            let sent = client.join().map_err(|_| anyhow!("a client panicked"))?;
            all.created.extend(sent.created);
            all.cancels += sent.cancels;
            all.retries += sent.retries;
        }
        Ok(all)
    }
}

fn work(servers: &[u16], client: u64, mut random: Random, stop: &AtomicBool) -> Sent {
    let mut sent = Sent::default();
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) {
        number += 1;
        let key = format!("torture-{client}-{number}");
        if let Some(id) = create(servers, &key, &mut random, stop) {
            sent.created.push(id);
        }
        let chosen = random.below(sent.created.len().max(1) as u64) as usize;
        if let Some(id) = sent.created.get(chosen) {
            let server = servers[random.below(servers.len() as u64) as usize];
            match random.below(20) {
                0 if post(server, &format!("/tasks/{id}:cancel")) => sent.cancels += 1,
                1 if post(server, &format!("/tasks/{id}:retry")) => sent.retries += 1,
                _ => {}
            }
        }
        std::thread::sleep(PAUSE);
    }
    sent
}

/// Until a server has said 200 or 201, whichever it is.
fn create(servers: &[u16], key: &str, random: &mut Random, stop: &AtomicBool) -> Option<String> {
    let body = json!({
        "type": "count",
        "payload": {
            "to": random.between(1, 10),
            "step_ms": random.between(1, 100),
            "fail_attempts": if random.below(10) == 0 { random.between(1, 5) } else { 0 },
        },
        "priority": random.below(3),
    });
    loop {
        let server = servers[random.below(servers.len() as u64) as usize];
        let headers = [("idempotency-key", key)];
        if let Ok((200 | 201, answer)) =
            http::send(server, "POST", "/tasks", &headers, &body.to_string())
        {
            let task: Value = serde_json::from_str(&answer).ok()?;
            return task.get("id")?.as_str().map(str::to_owned);
        }
        if stop.load(Ordering::SeqCst) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn post(server: u16, path: &str) -> bool {
    matches!(http::send(server, "POST", path, &[], ""), Ok((200, _)))
}
