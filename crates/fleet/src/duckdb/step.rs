//! Steps of the machine: checked against the rows as they are, then written as a whole.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::mem::take;

use lavra_db::duckdb::{self, Connection};
use lavra_db::{Clock, micros};

use super::row::{self, State};
use super::{DuckDb, log, run};
use crate::error::Result;
use crate::machine::{Entry, Guard, Step};
use crate::model::{Mission, MissionStatus, Worker, WorkerId};
use crate::store::Steps;

/// So many rows are found one by one, by their key; more are better found together.
const FEW: usize = 3;

#[async_trait]
impl Steps for DuckDb {
    async fn apply(&self, steps: Vec<Step>) -> Result<Vec<bool>> {
        let clock = self.duck.clock().clone();
        let job = move |tx: &Connection| {
            let mut writing = Writing::new(tx, &clock);
            writing.prepare(&steps)?;
            let written =
                steps.iter().map(|step| writing.apply(step)).collect::<duckdb::Result<_>>()?;
            writing.done()?;
            Ok(written)
        };
        Ok(self.duck.write("write what happened", job).await?)
    }
}

/// Steps that are being written: each is decided on the rows as the ones before it leave them, and
/// all that changed is written together.
pub(super) struct Writing<'a> {
    tx: &'a Connection,
    clock: &'a Clock,
    workers: Held<Worker>,
    missions: Held<Mission>,
    entries: Vec<&'a Entry>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(tx: &'a Connection, clock: &'a Clock) -> Self {
        let (workers, missions) = (Held::default(), Held::default());
        Self { tx, clock, workers, missions, entries: Vec::new() }
    }

    /// Rows that were read in this transaction.
    pub(super) fn knows(&mut self, worker: &Worker, mission: Option<&Mission>) {
        self.workers.keep(worker.clone());
        if let Some(mission) = mission {
            self.missions.keep(mission.clone());
        }
    }

    fn prepare(&mut self, steps: &[Step]) -> duckdb::Result<()> {
        let workers = steps.iter().filter_map(|step| Some(&*step.worker.as_ref()?.1.id.0));
        self.workers.read(self.tx, &workers.collect::<Vec<_>>())?;
        let missions = steps.iter().filter_map(|step| Some(&*step.mission.as_ref()?.1.id.0));
        self.missions.read(self.tx, &missions.collect::<Vec<_>>())
    }

    /// Takes the step, unless a row is no longer the writer's.
    pub(super) fn apply(&mut self, step: &'a Step) -> duckdb::Result<bool> {
        if let Some((token, after)) = &step.worker
            && !self.workers.get(self.tx, &after.id.0)?.is_some_and(|row| {
                let seen = step.seen.worker;
                row.token == Some(*token) && seen.is_none_or(|seen| seen == row.updated_at)
            })
        {
            return Ok(false);
        }
        if let Some((guard, after)) = &step.mission
            && !self.missions.get(self.tx, &after.id.0)?.is_some_and(|row| {
                let seen = step.seen.mission;
                holds(*guard, row) && (seen.is_none() || seen == row.logged_at)
            })
        {
            return Ok(false);
        }
        proxies(self.tx, step)?;
        if let (Some(session), Some((_, mission))) = (&step.links, &step.mission) {
            // An entry of a step before this one may be among them.
            self.write_entries()?;
            let worker = step.worker.as_ref().map(|(_, worker)| worker);
            log::link(self.tx, session, worker, &mission.id)?;
        }
        if let Some((_, after)) = &step.worker {
            // The token is not a step's to change.
            self.workers.set(&after.id.0, |row| Worker { token: row.token, ..after.clone() });
        }
        if let Some((_, after)) = &step.mission {
            self.missions.set(&after.id.0, |_| after.clone());
        }
        self.entries.extend(&step.logs);
        Ok(true)
    }

    pub(super) fn done(mut self) -> duckdb::Result<()> {
        self.workers.write(self.tx)?;
        self.missions.write(self.tx)?;
        self.write_entries()
    }

    fn write_entries(&mut self) -> duckdb::Result<()> {
        log::append(self.tx, self.clock, take(&mut self.entries).into_iter())
    }
}

/// Rows as they are stored, and as they will be.
struct Held<R>(BTreeMap<String, (R, R)>);

impl<R> Default for Held<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R: State + Clone + PartialEq> Held<R> {
    fn keep(&mut self, row: R) {
        self.0.insert(row.id().to_owned(), (row.clone(), row));
    }

    fn read(&mut self, tx: &Connection, ids: &[&str]) -> duckdb::Result<()> {
        if ids.len() > FEW {
            row::some(tx, ids)?.into_iter().for_each(|row| self.keep(row));
        }
        Ok(())
    }

    fn get(&mut self, tx: &Connection, id: &str) -> duckdb::Result<Option<&R>> {
        if !self.0.contains_key(id)
            && let Some(row) = row::one(tx, id)?
        {
            self.keep(row);
        }
        Ok(self.0.get(id).map(|(_, now)| now))
    }

    fn set(&mut self, id: &str, next: impl FnOnce(&R) -> R) {
        if let Some((_, now)) = self.0.get_mut(id) {
            *now = next(now);
        }
    }

    fn write(&self, tx: &Connection) -> duckdb::Result<()> {
        let changed: Vec<(&R, &R)> = self
            .0
            .values()
            .filter(|(stored, now)| stored != now)
            .map(|(stored, now)| (stored, now))
            .collect();
        if changed.len() > FEW {
            return row::change(tx, &changed);
        }
        changed.chunks(1).try_for_each(|one| row::change(tx, one))
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
