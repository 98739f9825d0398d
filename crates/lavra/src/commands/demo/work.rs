//! The work of a demonstration: submitted, and watched to its end.

use std::time::{Duration, Instant};

use anyhow::bail;
use lavra_extract::task::{Extract, Order, Told};
use lavra_fleet::Fleet;
use lavra_fleet::bank::Wanted;
use lavra_fleet::model::MissionStatus;
use lavra_fleet::store::Filter;
use lavra_tasks::model::{Task, TaskId};
use lavra_tasks::{Handler as _, NewTask, Tasks};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;

use super::bars::Bars;
use super::operator::Operator;
use super::outside::Outside;
use super::parts::Parts;

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Work that takes longer than this stands still.
const PATIENCE: Duration = Duration::from_secs(600);

/// Who is asked, heard and told while it is done.
pub(super) struct Work {
    tasks: Tasks,
    fleet: Fleet,
    told: Receiver<Told>,
    operator: Operator,
}

/// The two tasks, as they ended.
pub(super) struct Done {
    pub(super) extraction: Task,
    pub(super) run: Task,
    /// Proxies that were taken out of use, and put back.
    pub(super) repaired: Vec<String>,
    pub(super) took: Duration,
}

impl Work {
    pub(super) fn new(parts: &Parts, outside: &Outside) -> Self {
        Self {
            tasks: parts.tasks.clone(),
            fleet: parts.fleet.clone(),
            told: parts.told.resubscribe(),
            operator: Operator::new(&outside.proxies),
        }
    }

    /// Submits an extraction and missions, shows how far they are, and returns when both have ended,
    /// however they ended.
    pub(super) async fn run(
        mut self,
        order: &Order,
        missions: &Wanted,
        bars: &mut Bars<'_>,
    ) -> anyhow::Result<Done> {
        let begun = Instant::now();
        let (kind, payload) = (Extract::KIND.into(), json!(order));
        let extraction =
            self.tasks.create(NewTask { kind, payload, ..NewTask::default() }).await?.id;
        let made = self.fleet.add(missions, true).await?;
        let (run, _) = self.fleet.start(&self.tasks).await?;
        bars.begin(&order.source, made.queued as u64);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                heard = self.told.recv() => match heard {
                    Ok(heard) if heard.task == extraction => bars.heard(&heard),
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => bail!("the server ended before the work did"),
                },
                _ = look.tick() => {
                    let (extraction, run) = self.look(extraction, run, begun, bars).await?;
                    if extraction.status.is_terminal() && run.status.is_terminal() {
                        bars.close();
                        let (took, repaired) = (begun.elapsed(), self.operator.repaired());
                        return Ok(Done { extraction, run, repaired, took });
                    }
                }
            }
        }
    }

    async fn look(
        &mut self,
        extraction: TaskId,
        run: TaskId,
        begun: Instant,
        bars: &mut Bars<'_>,
    ) -> anyhow::Result<(Task, Task)> {
        let extraction = self.tasks.task(extraction).await?;
        let run = self.tasks.task(run).await?;
        let filter = Filter { status: Some(MissionStatus::Running), ..Filter::default() };
        let running = self.fleet.missions(&filter, None, 100).await?;
        let status = self.fleet.status().await?;
        bars.look(&extraction, &status, &running);
        self.operator.look(&self.fleet, &status).await?;
        if begun.elapsed() > PATIENCE {
            bail!(
                "the work stands still: the extraction is {} ({}), the fleet {} ({}) after {} s",
                extraction.status,
                extraction.state,
                run.status,
                run.state,
                PATIENCE.as_secs()
            );
        }
        Ok((extraction, run))
    }
}
