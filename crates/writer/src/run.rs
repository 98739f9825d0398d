//! A job from its source to its last row.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::batch::Batch;
use crate::collect::{Collector, Sample, sample};
use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::infer;
use crate::model::{Outcome, Progress};
use crate::order::{Operation, Order};
use crate::secret::Vault;
use crate::source::Sources;
use crate::store::{Claim, Keep, Look, Stopped, Store, no_table};
use crate::table::Table;

/// Elements that are looked at before a table is made.
const SAMPLE: Sample = Sample { elements: 1000, bytes: 16 << 20 };

/// What came of running a job.
#[derive(Debug)]
pub(crate) enum Ran {
    Ended(Outcome),
    /// Told to stop between two batches.
    Interrupted,
    /// Someone else has it.
    Replaced,
}

pub(crate) struct Run<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) sources: &'a Sources,
    pub(crate) config: &'a Config,
    pub(crate) vault: &'a Vault,
    pub(crate) stop: &'a CancellationToken,
}

/// Why an attempt is over before its end.
enum Break {
    Stopped(Stopped),
    Interrupted,
}

impl<E: Into<Stopped>> From<E> for Break {
    fn from(error: E) -> Self {
        Self::Stopped(error.into())
    }
}

impl Run<'_> {
    /// Tries until it is done or hopeless. Begun again it does what a restart would do.
    pub(crate) async fn job(&self, claim: &mut Claim) -> Ran {
        let mut attempt = 1;
        loop {
            let failure = match self.attempt(claim).await {
                Ok(outcome) => return Ran::Ended(outcome),
                Err(Break::Interrupted) => return Ran::Interrupted,
                Err(Break::Stopped(Stopped::Replaced)) => return Ran::Replaced,
                Err(Break::Stopped(Stopped::Failed(failure))) => failure,
            };
            if !failure.is_passing || attempt >= self.config.timing.attempts {
                return Ran::Ended(Outcome::Failed(failure));
            }
            let wait = self.config.timing.backoff * 2_u32.pow(attempt - 1);
            tracing::warn!(job = %claim.id, attempt, error = %failure.message, retry_in = ?wait, "the job is begun again");
            attempt += 1;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stop.cancelled() => return Ran::Interrupted,
            }
            // What was on its way when the line was cut may have been stored after all.
            if let Ok(Some(job)) = self.store.job(&claim.id).await {
                claim.progress = job.progress;
            }
        }
    }

    async fn attempt(&self, claim: &mut Claim) -> Result<Outcome, Break> {
        let order = self.order(claim).await?;
        let table = format!("{}.{}", order.config.schema, order.config.table);
        tracing::info!(job = %claim.id, source = ?order.source, table, "a job begins");
        let skip = match order.config.operation {
            // What was stored is stored: it goes on after it.
            Operation::Insert => claim.progress.processed,
            Operation::Upsert => {
                if claim.progress != Progress::default() {
                    self.store.restart(claim).await?;
                    claim.progress = Progress::default();
                }
                0
            }
        };
        let table = Arc::new(self.table(&order).await?);
        let mut batches = self.batches(&order, Arc::clone(&table), skip).await?;
        let keep = Keep { items: self.config.limits.failed_items };
        let mut interrupted = std::pin::pin!(self.stop.cancelled());
        loop {
            let batch = tokio::select! {
                biased;
                () = &mut interrupted => return Err(Break::Interrupted),
                batch = batches.recv() => batch,
            };
            let early =
                || Failure::new(Code::Internal, "what reads the source ended early").passing();
            let batch = batch.unwrap_or_else(|| Err(early())).map_err(Stopped::Failed)?;
            let Some(batch) = batch else { break };
            let mut progress = claim.progress.clone();
            let written = self.store.write(claim, &table, &batch, &mut progress, keep).await;
            // Also what came before a failure.
            claim.progress = progress;
            written?;
        }
        Ok(Outcome::of(&claim.progress))
    }

    async fn order(&self, claim: &Claim) -> Result<Order, Failure> {
        let processed = claim.progress.processed;
        let secret = self.vault.of(claim).await.map_err(|failure| failure.after(processed))?;
        Order::from_text(&claim.request, secret)
            .ok_or_else(|| Failure::new(Code::Internal, "the order cannot be read any more"))
    }

    /// Reads and splits the source on a thread of its own.
    async fn batches(
        &self,
        order: &Order,
        table: Arc<Table>,
        skip: u64,
    ) -> Result<mpsc::Receiver<Result<Option<Batch>, Failure>>, Failure> {
        let opened = self.sources.open(order).await?;
        let (sender, batches) = mpsc::channel(1);
        let (limits, path) = (self.config.limits.clone(), order.json_path.clone());
        tokio::task::spawn_blocking(move || match opened.text(&limits) {
            Ok(text) => Collector::new(table, limits, skip).run(text, path, &sender),
            Err(failure) => {
                let _unwanted = sender.blocking_send(Err(failure));
            }
        });
        Ok(batches)
    }

    async fn table(&self, order: &Order) -> Result<Table, Failure> {
        if let Look::Table(table) = self.store.look(&order.config).await? {
            return Ok(table);
        }
        if !order.config.create_table {
            return Err(no_table(&order.config));
        }
        let opened = self.sources.open(order).await?;
        let (limits, path) = (self.config.limits.clone(), order.json_path.clone());
        let caps = limits.caps;
        let sampled = tokio::task::spawn_blocking(move || {
            let text = opened.text(&limits)?;
            sample(text, path, &limits, SAMPLE)
        });
        let sampled =
            sampled.await.map_err(|error| Failure::new(Code::Internal, error.to_string()))??;
        let shape = infer::shape(&order.config, &sampled, &caps)?;
        self.store.create(&order.config, &shape).await?;
        match self.store.look(&order.config).await? {
            Look::Table(table) => Ok(table),
            Look::Missing => Err(no_table(&order.config)),
        }
    }
}

/// Waits that grow.
pub(crate) fn longer(wait: Duration) -> Duration {
    (wait * 2).min(Duration::from_secs(10))
}
