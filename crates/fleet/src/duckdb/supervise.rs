//! What one who looks after a worker or a mission asks.

use async_trait::async_trait;
use lavra_db::Clock;
use lavra_db::duckdb::{self, Connection};
use lavra_tasks::model::Token;

use super::row::Table;
use super::step::Writing;
use super::{DuckDb, adjust, all, exists, first, row};
use crate::error::Result;
use crate::machine::Step;
use crate::machine::worker::{self, View};
use crate::model::{Mission, MissionId, Proxy, Worker, WorkerId, WorkerStatus};
use crate::store::{Assigned, Opened, Opening, Supervises};

/// What waits for a worker.
const IN_QUEUE: &str = "status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NULL";

#[async_trait]
impl Supervises for DuckDb {
    async fn view(&self, worker: &WorkerId, token: Token) -> Result<Option<View>> {
        let worker = worker.clone();
        let job = move |connection: &Connection| {
            // One moment for all of it. A connection that failed is not used again.
            connection.execute_batch("BEGIN TRANSACTION READ ONLY")?;
            let seen = view(connection, &worker, token)?;
            connection.execute_batch("COMMIT")?;
            Ok(seen)
        };
        Ok(self.duck.read("look at a worker", job).await?)
    }

    async fn storing(&self, mission: &MissionId, token: Token) -> Result<Option<Mission>> {
        let id = mission.clone();
        let job = move |connection: &Connection| row::one::<Mission>(connection, &id.0);
        let found = self.duck.read("look at a mission", job).await?;
        Ok(found.filter(|mission| mission.token == Some(token)))
    }

    async fn open(&self, opening: Opening) -> Result<Opened> {
        let (clock, now) = (self.duck.clock().clone(), self.now());
        let job = move |tx: &Connection| {
            let seen = view(tx, &opening.worker, opening.token)?;
            let Some(view) = seen.filter(|view| view.worker.status == WorkerStatus::Idle) else {
                return Ok(Opened::Lost);
            };
            if view.mission.is_none() && !is_one_more_needed(tx)? {
                return Ok(Opened::NotNeeded);
            }
            let all = proxies(tx)?;
            let Some(proxy) = choose(&all, &view, opening.luck) else {
                if let Some(step) = worker::no_proxy(&view, now) {
                    write(tx, &clock, &view, None, &step)?;
                }
                return Ok(Opened::NoProxy);
            };
            let last = view.worker.last_proxy_id.as_ref();
            let previous = all.iter().find(|proxy| Some(&proxy.id) == last).map(Proxy::label);
            let step = worker::opened(&view, proxy, previous, opening.session.clone(), now);
            let is_written = write(tx, &clock, &view, None, &step)?;
            Ok(if is_written { Opened::With(Box::new(proxy.clone())) } else { Opened::Lost })
        };
        Ok(self.duck.write("open a worker's session", job).await?)
    }

    async fn assign(&self, worker: &WorkerId, token: Token) -> Result<Assigned> {
        let (clock, now) = (self.duck.clock().clone(), self.now());
        let worker = worker.clone();
        let job = move |tx: &Connection| {
            let Some(view) = view(tx, &worker, token)?.filter(View::is_free) else {
                return Ok(Assigned::Lost);
            };
            let Some(mission) = first_of_the_queue(tx)? else {
                return Ok(Assigned::NothingQueued);
            };
            let step = worker::assigned(&view, &mission, now);
            let is_written = write(tx, &clock, &view, Some(&mission), &step)?;
            Ok(if is_written {
                Assigned::With(Box::new(view.after(&step)))
            } else {
                Assigned::Lost
            })
        };
        Ok(self.duck.write("assign a mission", job).await?)
    }
}

/// Writes a step that was decided on these rows.
fn write(
    tx: &Connection,
    clock: &Clock,
    view: &View,
    queued: Option<&Mission>,
    step: &Step,
) -> duckdb::Result<bool> {
    let mut writing = Writing::new(tx, clock);
    writing.knows(&view.worker, queued.or(view.mission.as_ref()));
    let is_written = writing.apply(step)?;
    writing.done()?;
    Ok(is_written)
}

/// The worker with what it holds, if it has this token.
fn view(connection: &Connection, id: &WorkerId, token: Token) -> duckdb::Result<Option<View>> {
    let found = row::one::<Worker>(connection, &id.0)?;
    let Some(worker) = found.filter(|worker| worker.token == Some(token)) else {
        return Ok(None);
    };
    let mission = match &worker.current_mission_id {
        Some(mission) => row::one(connection, &mission.0)?,
        None => None,
    };
    // A worker has at most one, and it is the last that it was given.
    let last = match &worker.last_proxy_id {
        Some(proxy) => row::one::<Proxy>(connection, &proxy.0)?,
        None => None,
    };
    let waits = format!("SELECT 1 FROM public.missions WHERE {IN_QUEUE} LIMIT 1");
    Ok(Some(View {
        mission,
        proxy: last.filter(|proxy| proxy.in_use_by_worker_id.as_ref() == Some(id)),
        has_queue: exists(connection, &waits, [])?,
        mode: adjust::control(connection)?.mode,
        worker,
    }))
}

/// Whether more missions wait than there are sessions without one.
fn is_one_more_needed(tx: &Connection) -> duckdb::Result<bool> {
    let sql = format!(
        "SELECT (SELECT count(*) FROM public.missions WHERE {IN_QUEUE})
              > (SELECT count(*) FROM public.workers
                 WHERE status IN ('ready', 'initializing') AND current_mission_id IS NULL
                   AND close_reason IS NULL)"
    );
    Ok(first(tx, &sql, [], |row| row.get(0))?.unwrap_or(false))
}

/// The oldest, by two aggregates: a sort of all that waits takes longer.
fn first_of_the_queue(tx: &Connection) -> duckdb::Result<Option<Mission>> {
    let sql = format!(
        "SELECT min(id) FROM public.missions WHERE {IN_QUEUE}
           AND queued_at = (SELECT min(queued_at) FROM public.missions WHERE {IN_QUEUE})"
    );
    let id: Option<Option<String>> = first(tx, &sql, [], |row| row.get(0))?;
    id.flatten().map_or(Ok(None), |id| row::one(tx, &id))
}

fn proxies(tx: &Connection) -> duckdb::Result<Vec<Proxy>> {
    let sql = format!("SELECT to_json(r)::VARCHAR FROM {} r ORDER BY r.id", Proxy::READ);
    all(tx, &sql, [], row::read)
}

/// A free one by `luck`; not the one before, unless it is the only one that is active.
fn choose<'a>(all: &'a [Proxy], view: &View, luck: u64) -> Option<&'a Proxy> {
    let active = || all.iter().filter(|proxy| proxy.active);
    let is_only = active().count() == 1;
    let last = view.worker.last_proxy_id.as_ref();
    let free: Vec<&Proxy> = active()
        .filter(|proxy| proxy.in_use_by_worker_id.is_none())
        .filter(|proxy| is_only || Some(&proxy.id) != last)
        .collect();
    let place = luck.checked_rem(free.len() as u64)?;
    free.get(place as usize).copied()
}
