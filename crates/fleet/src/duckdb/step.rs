//! Steps of the machine: checked against the rows as they are, then written as a whole.

use std::mem::take;

use lavra_db::duckdb::{self, Connection};
use lavra_db::{Clock, micros};

use super::{DuckDb, log, rows, run};
use crate::error::Result;
use crate::machine::{Entry, Guard, Step};
use crate::model::{Mission, MissionStatus, Worker, WorkerId};

impl DuckDb {
    pub(super) async fn write_steps(&self, steps: Vec<Step>) -> Result<Vec<bool>> {
        let clock = self.duck.clock().clone();
        let job = move |tx: &Connection| {
            let mut writing = Writing::new(tx, &clock);
            let written = steps.iter().map(|step| writing.apply(step)).collect();
            writing.done()?;
            written
        };
        Ok(self.duck.write("write steps", job).await?)
    }
}

/// Steps that are being written; their entries go to the log together.
pub(super) struct Writing<'a> {
    tx: &'a Connection,
    clock: &'a Clock,
    entries: Vec<&'a Entry>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(tx: &'a Connection, clock: &'a Clock) -> Self {
        Self { tx, clock, entries: Vec::new() }
    }

    pub(super) fn done(&mut self) -> duckdb::Result<()> {
        log::append(self.tx, self.clock, take(&mut self.entries).into_iter())
    }

    /// Writes the step, unless a row is no longer the writer's.
    pub(super) fn apply(&mut self, step: &'a Step) -> duckdb::Result<bool> {
        let tx = self.tx;
        let Some(worker) = Change::of(&step.worker, |token, after: &Worker| {
            Ok(rows::worker(tx, &after.id)?.filter(|row| row.token == Some(*token)))
        })?
        else {
            return Ok(false);
        };
        let Some(mission) = Change::of(&step.mission, |guard, after: &Mission| {
            Ok(rows::mission(tx, &after.id)?.filter(|row| holds(*guard, row)))
        })?
        else {
            return Ok(false);
        };
        proxies(tx, step)?;
        if let Change::From(before, after) = &worker {
            rows::change_worker(tx, before, after)?;
        }
        if let Change::From(before, after) = &mission {
            if let Some(session) = &step.links {
                // An entry of a step before this one may be among them.
                self.done()?;
                let worker = step.worker.as_ref().map(|(_, worker)| worker);
                log::link(tx, session, worker, &after.id)?;
            }
            rows::change_mission(tx, before, after)?;
        }
        self.entries.extend(&step.logs);
        Ok(true)
    }
}

/// A row before and after a step.
enum Change<'a, R> {
    Nothing,
    From(R, &'a R),
}

impl<'a, R> Change<'a, R> {
    /// `None` where the step has a row that `find` does not.
    fn of<G>(
        asked: &'a Option<(G, R)>,
        find: impl FnOnce(&G, &R) -> duckdb::Result<Option<R>>,
    ) -> duckdb::Result<Option<Self>> {
        let Some((guard, after)) = asked else { return Ok(Some(Self::Nothing)) };
        Ok(find(guard, after)?.map(|before| Self::From(before, after)))
    }
}

fn holds(guard: Guard, row: &Mission) -> bool {
    match guard {
        Guard::Held(token) => row.status == MissionStatus::Running && row.token == Some(token),
        Guard::Queued => row.status == MissionStatus::Queued,
    }
}

/// What a step does to proxies, in the order in which it counts.
fn proxies(tx: &Connection, step: &Step) -> duckdb::Result<()> {
    let worker = step.worker.as_ref().map(|(_, worker)| worker);
    if let Some((id, most)) = &step.blamed {
        let sql = "UPDATE public.proxies SET fail_count = fail_count + 1,
                       active = active AND fail_count + 1 < $2
                   WHERE id = $1";
        run(tx, sql, (&id.0, most))?;
    }
    if let Some(id) = &step.praised {
        run(tx, "UPDATE public.proxies SET fail_count = 0 WHERE id = $1", (&id.0,))?;
    }
    if step.releases_proxy
        && let Some(Worker { id: WorkerId(id), .. }) = worker
    {
        let sql = "UPDATE public.proxies SET in_use_by_worker_id = NULL
                   WHERE in_use_by_worker_id = $1";
        run(tx, sql, (id,))?;
    }
    if let (Some(proxy), Some(worker)) = (&step.reserves, worker) {
        let sql = "UPDATE public.proxies SET in_use_by_worker_id = $2,
                       last_used_at = make_timestamp($3)
                   WHERE id = $1";
        run(tx, sql, (&proxy.0, &worker.id.0, micros(worker.updated_at)))?;
    }
    Ok(())
}
