//! What an overview shows: what ended when, what failed with what, what waits for what.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::Memory;
use crate::code::ErrorCode;
use crate::error::Result;
use crate::model::{MissionStatus, WriterId};
use crate::store::{Filter, Glances, Pace, Wait, Waiter, WaitsFor, WriterLoad};

#[async_trait]
impl Glances for Memory {
    async fn count(&self, filter: &Filter) -> Result<i64> {
        Ok(self.tables().matching(filter).count() as i64)
    }

    async fn stamp(&self) -> Result<String> {
        let tables = self.tables();
        let newest = tables.missions.last_key_value().map(|(id, _)| id);
        let (workers, proxies) = (&tables.workers, &tables.proxies);
        let all = (newest, workers, proxies, &tables.writers, tables.control, tables.adjustable);
        Ok(format!("{all:?}"))
    }

    async fn pace(&self, since: Timestamp, step: Duration) -> Result<Vec<Pace>> {
        let step = step.as_micros().max(1_000_000) as i64;
        let mut pieces: BTreeMap<i64, Pace> = BTreeMap::new();
        for mission in self.tables().missions.values() {
            let Some(at) = mission.finished_at.filter(|at| *at >= since) else { continue };
            let start = at.as_microsecond().div_euclid(step) * step;
            let begin = Timestamp::from_microsecond(start).unwrap_or(at);
            let empty = Pace { at: begin, completed: 0, failed: 0, ads: 0 };
            match mission.status {
                MissionStatus::Completed => {
                    let piece = pieces.entry(start).or_insert(empty);
                    piece.completed += 1;
                    piece.ads += i64::from(mission.ads_count.unwrap_or(0));
                }
                MissionStatus::Failed => pieces.entry(start).or_insert(empty).failed += 1,
                MissionStatus::Queued | MissionStatus::Running | MissionStatus::Canceled => {}
            }
        }
        Ok(pieces.into_values().collect())
    }

    async fn failures_by_code(&self, since: Timestamp) -> Result<Vec<(ErrorCode, i64)>> {
        let mut counted: BTreeMap<ErrorCode, i64> = BTreeMap::new();
        for mission in self.tables().missions.values() {
            if mission.status == MissionStatus::Failed
                && mission.finished_at.is_some_and(|at| at >= since)
                && let Some(code) = mission.error_code
            {
                *counted.entry(code).or_default() += 1;
            }
        }
        let mut counted: Vec<(ErrorCode, i64)> = counted.into_iter().collect();
        counted.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), *code));
        Ok(counted)
    }

    async fn waits(&self) -> Result<Vec<Wait>> {
        let tables = self.tables();
        let missions = tables.missions.values().filter_map(|mission| {
            let since = mission.phase_started_at.or(mission.queued_at);
            let what = WaitsFor::of(mission)?;
            Some(Wait { who: Waiter::Mission, what, count: 1, since })
        });
        let workers = tables.workers.values().filter(|worker| worker.active);
        let workers = workers.filter_map(|worker| {
            let what = WaitsFor::Named(worker.waiting?);
            let since = Some(worker.updated_at);
            Some(Wait { who: Waiter::Worker, what, count: 1, since })
        });
        Ok(Wait::merged(missions.chain(workers).collect()))
    }

    async fn writer_loads(&self, since: Timestamp) -> Result<Vec<WriterLoad>> {
        let mut loads: BTreeMap<WriterId, WriterLoad> = BTreeMap::new();
        for mission in self.tables().missions.values() {
            let is_recent = mission.finished_at.is_some_and(|at| at >= since);
            let is_running = mission.status == MissionStatus::Running;
            let Some(writer) = mission.writer_id.clone().filter(|_| is_recent || is_running) else {
                continue;
            };
            let none = WriterLoad { writer: writer.clone(), under_way: 0, completed: 0, failed: 0 };
            let load = loads.entry(writer).or_insert(none);
            match mission.status {
                MissionStatus::Running => load.under_way += 1,
                MissionStatus::Completed => load.completed += 1,
                MissionStatus::Failed => load.failed += 1,
                MissionStatus::Queued | MissionStatus::Canceled => {}
            }
        }
        Ok(loads.into_values().collect())
    }
}
