//! Who looks after what: shares of the workers, and missions that are being stored.

use async_trait::async_trait;
use std::collections::HashSet;
use std::time::Duration;

use lavra_db::duckdb::{self, Connection, Row};
use lavra_db::{Duck, micros};
use lavra_tasks::model::{ProcessId, Token};
use serde::Serialize;
use uuid::Uuid;

use super::{DuckDb, all, change, run, set};
use crate::error::Result;
use crate::model::{MissionId, WorkerId};
use crate::store::{Leased, Leases, WRITES};

const RENEW: &str = "UPDATE public.fleet_processes SET seen_at = make_timestamp($2) WHERE id = $1";
const ENTER: &str =
    "INSERT INTO public.fleet_processes (id, seen_at) VALUES ($1, make_timestamp($2))";
const SEEN: &str = "SELECT id, epoch_us(seen_at) FROM public.fleet_processes";
const FORGET: &str = "DELETE FROM public.fleet_processes WHERE id = $1";

/// A set of [`Taken`].
macro_rules! taken {
    () => {
        r#"(SELECT unnest(from_json($1::JSON, '[{"id": "VARCHAR", "token": "BIGINT"}]'),
            recursive := true)) x"#
    };
}
const WORKERS: &str = "
SELECT id, active OR status <> 'idle' OR unclosed, held_by, token, current_mission_id
FROM public.workers ORDER BY id";

const TAKE_WORKERS: &str = concat!(
    "UPDATE public.workers t SET token = x.token, held_by = $2::UUID FROM ",
    taken!(),
    " WHERE t.id = x.id"
);

/// A worker comes with its mission.
const TAKE_THEIR_MISSIONS: &str = concat!(
    "UPDATE public.missions t SET token = x.token, held_by = $2::UUID FROM ",
    taken!(),
    " WHERE t.id = x.id AND t.status = 'running' AND t.checkpoint = 'extracao'"
);

/// What is being stored, or waits to be without being scraped.
const STORING: &str = "
SELECT id, held_by, token FROM public.missions
WHERE (status = 'running' AND checkpoint = 'armazenamento')
   OR (status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NOT NULL)
ORDER BY id";

/// One from the queue goes straight to the writer, as `machine::mission::to_the_writer` has it.
const TAKE_MISSIONS: &str = concat!(
    "UPDATE public.missions t SET token = x.token, held_by = $2::UUID, status = 'running',
         checkpoint = 'armazenamento',
         started_at = CASE WHEN t.status = 'queued' THEN make_timestamp($3) ELSE t.started_at END
     FROM ",
    taken!(),
    " WHERE t.id = x.id"
);

#[derive(Serialize)]
struct Taken<'a> {
    id: &'a str,
    token: Token,
}

struct Worker {
    id: String,
    /// Whether someone has to look after it.
    is_needed: bool,
    held_by: Option<Uuid>,
    token: Option<Token>,
    mission: Option<String>,
}

impl Worker {
    fn read(row: &Row<'_>) -> duckdb::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            is_needed: row.get(1)?,
            held_by: row.get(2)?,
            token: row.get(3)?,
            mission: row.get(4)?,
        })
    }
}

struct Mission {
    id: String,
    held_by: Option<Uuid>,
    token: Option<Token>,
}

impl Mission {
    fn read(row: &Row<'_>) -> duckdb::Result<Self> {
        Ok(Self { id: row.get(0)?, held_by: row.get(1)?, token: row.get(2)? })
    }
}

#[async_trait]
impl Leases for DuckDb {
    async fn lease(&self, process: ProcessId, stale: Duration) -> Result<Leased> {
        let now = micros(self.now());
        let stale = i64::try_from(stale.as_micros()).unwrap_or(i64::MAX);
        let job = Lease {
            duck: self.duck.clone(),
            process: process.0,
            now,
            since: now.saturating_sub(stale).max(0),
        };
        Ok(self.duck.write("take a share of the fleet", move |tx| job.run(tx)).await?)
    }

    async fn release(&self, process: ProcessId, workers: Vec<WorkerId>) -> Result<()> {
        let sql = "UPDATE public.workers SET held_by = NULL
                   WHERE held_by = $2::UUID AND id IN (SELECT unnest($1::JSON::VARCHAR[]))";
        let job = move |tx: &Connection| run(tx, sql, (set(&workers)?, process.0));
        Ok(self.duck.write("give workers back", job).await?)
    }

    async fn leave(&self, process: ProcessId) -> Result<()> {
        let job = move |tx: &Connection| {
            run(tx, FORGET, (process.0,))?;
            for table in ["public.workers", "public.missions"] {
                let sql = format!("UPDATE {table} SET held_by = NULL WHERE held_by = $1");
                run(tx, &sql, (process.0,))?;
            }
            Ok(())
        };
        Ok(self.duck.write("give everything back", job).await?)
    }
}

struct Lease {
    duck: Duck,
    process: Uuid,
    now: i64,
    /// Who has said so since lives.
    since: i64,
}

impl Lease {
    fn run(&self, tx: &Connection) -> duckdb::Result<Leased> {
        let live = self.beat(tx)?;
        let is_free = |held_by: Option<Uuid>| held_by.is_none_or(|id| !live.contains(&id));
        let mut workers = all(tx, WORKERS, [], Worker::read)?;
        let mut missions = all(tx, STORING, [], Mission::read)?;
        self.go_beyond(workers.iter().map(|worker| worker.token));
        self.go_beyond(missions.iter().map(|mission| mission.token));

        let needed = workers.iter().filter(|worker| worker.is_needed).count();
        let share = needed.div_ceil(live.len().max(1));
        let held = workers.iter().filter(|worker| worker.held_by == Some(self.process)).count();
        let mut free: Vec<&mut Worker> = workers
            .iter_mut()
            .filter(|worker| worker.is_needed && is_free(worker.held_by))
            .take(share.saturating_sub(held))
            .collect();
        for worker in &mut free {
            worker.token = Some(self.duck.next_sequence());
            worker.held_by = Some(self.process);
        }
        let rows: Vec<Taken<'_>> = free
            .iter()
            .filter_map(|worker| Some(Taken { id: &worker.id, token: worker.token? }))
            .collect();
        let scraped: Vec<Taken<'_>> = free
            .iter()
            .filter_map(|worker| {
                Some(Taken { id: worker.mission.as_deref()?, token: worker.token? })
            })
            .collect();
        self.write(tx, TAKE_WORKERS, &rows)?;
        self.write(tx, TAKE_THEIR_MISSIONS, &scraped)?;

        let mut to_store = Vec::new();
        for mission in missions.iter_mut().filter(|m| is_free(m.held_by)).take(WRITES) {
            let token = self.duck.next_sequence();
            mission.token = Some(token);
            mission.held_by = Some(self.process);
            to_store.push(Taken { id: &mission.id, token });
        }
        self.take_to_the_writer(tx, &to_store)?;

        let is_ours = |held_by: Option<Uuid>| held_by == Some(self.process);
        let workers: Vec<(WorkerId, Token)> = workers
            .into_iter()
            .filter(|worker| is_ours(worker.held_by))
            .filter_map(|worker| Some((WorkerId(worker.id), worker.token?)))
            .collect();
        let missions = missions
            .into_iter()
            .filter(|mission| is_ours(mission.held_by))
            .filter_map(|mission| Some((MissionId(mission.id), mission.token?)))
            .collect();
        Ok(Leased { surplus: workers.len().saturating_sub(share), workers, missions })
    }

    /// New tokens are greater than these, whatever the clock says.
    fn go_beyond(&self, tokens: impl Iterator<Item = Option<Token>>) {
        if let Some(token) = tokens.flatten().max() {
            self.duck.sequence_beyond(token);
        }
    }

    /// Says that the process lives, forgets those that do not, and returns the others.
    fn beat(&self, tx: &Connection) -> duckdb::Result<HashSet<Uuid>> {
        if change(tx, RENEW, (self.process, self.now))? == 0 {
            run(tx, ENTER, (self.process, self.now))?;
        }
        let seen: Vec<(Uuid, i64)> = all(tx, SEEN, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut live = HashSet::new();
        for (id, seen) in seen {
            if seen >= self.since {
                live.insert(id);
            } else {
                run(tx, FORGET, (id,))?;
            }
        }
        Ok(live)
    }

    fn write(&self, tx: &Connection, sql: &str, taken: &[Taken<'_>]) -> duckdb::Result<()> {
        if taken.is_empty() {
            return Ok(());
        }
        run(tx, sql, (set(taken)?, self.process))
    }

    fn take_to_the_writer(&self, tx: &Connection, taken: &[Taken<'_>]) -> duckdb::Result<()> {
        if taken.is_empty() {
            return Ok(());
        }
        run(tx, TAKE_MISSIONS, (set(taken)?, self.process, self.now))
    }
}
