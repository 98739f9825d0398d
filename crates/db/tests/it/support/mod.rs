//! What the tests share: places where a database can be, and processes to kill.

pub(crate) mod child;
pub(crate) mod place;

use std::time::{Duration, Instant};

use uuid::Uuid;

/// A number below `limit`, another one each time.
pub(crate) fn random(limit: u64) -> u64 {
    (Uuid::new_v4().as_u128() % u128::from(limit)) as u64
}

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

/// Lets a process live at another time, as «+1h» or «-1h».
pub(crate) fn faketime(command: &mut std::process::Command, shift: &str) {
    let usual = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    let library = std::env::var("LAVRA_TEST_FAKETIME").unwrap_or_else(|_| usual.into());
    let is_there = std::path::Path::new(&library).exists();
    assert!(is_there, "{library} is not there: run it by cargo xtask test");
    command.env("LD_PRELOAD", library).env("FAKETIME", shift);
}
