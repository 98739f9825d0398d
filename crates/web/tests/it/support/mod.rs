//! What the tests share: places for a database, a server on them, and one who calls it.

pub(crate) mod access;
pub(crate) mod browser;
pub(crate) mod client;
pub(crate) mod form;
pub(crate) mod odd;
pub(crate) mod place;
pub(crate) mod server;
pub(crate) mod sse;
pub(crate) mod storm;
pub(crate) mod world;

use std::time::{Duration, Instant};

pub(crate) use client::{Client, Reply};
pub(crate) use place::{Place, on_each_engine};
pub(crate) use server::Server;
pub(crate) use world::World;

/// Asks again until `question` answers, and fails loudly when it does not in `patience`.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    patience: Duration,
    question: impl Fn() -> F,
) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = question().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: not within {patience:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
