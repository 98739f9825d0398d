//! The loop of one mission that is being stored.

use std::time::Duration;

use lavra_tasks::model::Token;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Orchestrator, Patience, wait};
use crate::api::{Reply, WriterApi};
use crate::error::Result;
use crate::machine::writer::{Ask, Todo, after, todo};
use crate::model::{Mission, MissionId, Writer};
use crate::store::Thing;

impl Orchestrator {
    /// Sees a mission through the writer, until it ends, is someone else's, or it is told to
    /// end.
    pub(super) async fn store_mission(
        &self,
        id: &MissionId,
        token: Token,
        until: &CancellationToken,
    ) -> Result<()> {
        let mut patience = Patience::new(self);
        let mut asked: Option<(Ask, Instant)> = None;
        while !until.is_cancelled() {
            patience.ears.forget();
            let mission = self.patiently(|| self.store.storing(id, token)).await?;
            let Some(mission) = mission else { return Ok(()) };
            let writers = self.patiently(|| self.store.writers()).await?;
            let job_id = self.store.clock().new_id().to_string();
            match todo(&mission, &writers, &job_id, &self.settings(), self.now()) {
                Todo::Leave => return Ok(()),
                Todo::Rest(_) => patience.queue(until).await,
                Todo::Until(time, _) => {
                    let due = async {
                        tokio::select! {
                            biased;
                            () = self.sleep_until(time) => {}
                            () = patience.ears.work() => {}
                        }
                    };
                    wait(until, due).await;
                }
                Todo::Write(step) => {
                    if !self.write(*step).await? {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
                Todo::Ask(ask, writer, every) => {
                    let turn = asked.filter(|(last, _)| *last == ask).map(|(_, at)| at + every);
                    if let Some(due) = turn.filter(|due| *due > Instant::now()) {
                        let turn = async {
                            tokio::select! {
                                biased;
                                () = tokio::time::sleep_until(due) => {}
                                () = patience.ears.work() => {}
                            }
                        };
                        wait(until, turn).await;
                        continue;
                    }
                    let Some(writer) = writers.iter().find(|other| other.id == writer) else {
                        continue;
                    };
                    asked = Some((ask, Instant::now()));
                    let reply = self.ask_writer(&mission, writer, ask).await;
                    let step = after(&mission, ask, &reply, &self.settings(), self.now());
                    if let Some(step) = step
                        && !self.write(step).await?
                    {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            }
        }
        Ok(())
    }

    async fn ask_writer(&self, mission: &Mission, writer: &Writer, ask: Ask) -> Reply {
        let api = WriterApi {
            transport: &*self.transport,
            writer,
            api_key: self.keys.key(&Thing::Writer(writer.id.clone())).await,
            timeout: self.timing.call,
        };
        match (ask, &mission.writer_job_id) {
            (Ask::Process, _) => api.process(mission).await,
            (Ask::Status, Some(job)) => api.status(job).await,
            (Ask::Status, None) => Reply::Unknown,
        }
    }
}
