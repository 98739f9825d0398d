//! What a worker does by the clock: a session that nobody uses ends, and what is old is removed.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::JobId;
use crate::worker::Worker;

const LONGEST: Duration = Duration::from_secs(30);

impl Worker {
    pub(crate) fn keep(&self) {
        let (worker, stop) = (self.clone(), self.inner.stop.clone());
        let every = (self.inner.timing.idle / 4).clamp(Duration::from_millis(50), LONGEST);
        self.inner.tasks.spawn(async move {
            loop {
                worker.forget_old().await;
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(every) => worker.end_if_idle().await,
                }
            }
        });
    }

    /// Jobs that ended long ago, with their results. Those in a bucket are the bucket's.
    async fn forget_old(&self) {
        let keep = self.inner.timing.keep;
        let is_old = |end: Timestamp| {
            Duration::try_from(Timestamp::now().duration_since(end)).is_ok_and(|age| age > keep)
        };
        let old: Vec<JobId> = {
            let mut state = self.inner.state.lock();
            let ended = state.jobs.values().map(|entry| &entry.job);
            let old = ended.filter(|job| job.finished_at.is_some_and(is_old));
            let old: Vec<JobId> = old.map(|job| job.id.clone()).collect();
            for id in &old {
                let key = state.jobs.remove(id).and_then(|entry| entry.job.idempotency_key);
                if let Some(key) = key {
                    state.by_key.remove(&key);
                }
            }
            old
        };
        for id in old {
            tracing::info!(job = %id, "an old job is removed");
            let disk = &self.inner.disk;
            for place in [disk.job(&id), disk.results().join(id.as_str())] {
                let _tried_again_at_the_next_start = tokio::fs::remove_dir_all(place).await;
            }
        }
    }
}
