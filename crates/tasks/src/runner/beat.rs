//! The heartbeat: one row per process, and with its answer the news of what was lost.
//!
//! Cancellation is a row, read with every heartbeat, so that it is seen within one of them even
//! if every notification is lost; a notification only makes the next heartbeat come at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Shared;

pub(super) async fn until_known(shared: &Shared) {
    let mut pause = Duration::from_millis(100);
    loop {
        let begun = Instant::now();
        match shared.tasks.store().beat(shared.process.clone(), Vec::new()).await {
            Ok(_) => return shared.pulse.felt(begun),
            Err(error) => tracing::warn!(%error, "cannot register this process yet"),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(2)),
            () = shared.stop.cancelled() => return,
        }
    }
}

pub(super) async fn keep(shared: Arc<Shared>) {
    let mut cancels = shared.tasks.cancels();
    loop {
        tokio::select! {
            () = tokio::time::sleep(shared.config.heartbeat) => {}
            () = cancels.rung() => {}
        }
        let begun = Instant::now();
        match shared.tasks.beat(shared.process.clone(), shared.held.list()).await {
            Ok(lost) => {
                shared.pulse.felt(begun);
                shared.held.lose(&lost);
            }
            Err(error) => {
                let silent = shared.pulse.silent_for();
                tracing::warn!(%error, ?silent, "the heartbeat was not written");
            }
        }
    }
}
