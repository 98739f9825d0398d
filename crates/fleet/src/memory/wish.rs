//! Missions of the bank and the queue.

use async_trait::async_trait;
use jiff::SignedDuration;

use super::Memory;
use crate::error::Result;
use crate::machine::mission::{Wish, granted, refusal};
use crate::model::{LogEntry, LogId, Mission, MissionId, MissionStatus};
use crate::store::{Filter, NewMission, Wishes};

#[async_trait]
impl Wishes for Memory {
    async fn add_missions(&self, missions: Vec<NewMission>, again: bool) -> Result<Vec<MissionId>> {
        let now = self.now();
        let mut tables = self.tables();
        let mut added = Vec::new();
        for new in missions {
            let is_same = |old: &Mission| {
                (old.date_start, old.date_end, old.media_type, &old.languages)
                    == (new.date_start, new.date_end, new.media_type, &new.languages)
            };
            if !again && tables.missions.values().any(is_same) {
                continue;
            }
            added.push(new.id.clone());
            tables.put(Mission {
                id: new.id,
                date_start: new.date_start,
                date_end: new.date_end,
                media_type: new.media_type,
                languages: new.languages,
                status: MissionStatus::Queued,
                checkpoint: None,
                worker_id: None,
                worker_job_id: None,
                worker_data_url: None,
                proxy_used: None,
                writer_job_id: None,
                ads_count: None,
                error_code: None,
                error_message: None,
                retry_count: 0,
                created_at: now,
                queued_at: None,
                started_at: None,
                finished_at: None,
                attempts: 0,
                phase_started_at: None,
                writer_id: None,
                writer_accepted_at: None,
                writer_processed: None,
                writer_moved_at: None,
                next_attempt_at: None,
                waiting: None,
                told_at: None,
                logged_at: None,
                token: None,
                held_by: None,
            });
        }
        Ok(added)
    }

    async fn wish(&self, filter: &Filter, wish: Wish, by: &str) -> Result<Vec<MissionId>> {
        let now = self.now();
        let mut tables = self.tables();
        let may: Vec<Mission> = tables
            .matching(filter)
            .filter(|mission| refusal(mission, wish).is_none())
            .cloned()
            .collect();
        let mut done = Vec::new();
        for (number, mission) in may.into_iter().enumerate() {
            // Each has a time of its own, so that the queue has an order.
            let at = now.saturating_add(SignedDuration::from_micros(number as i64)).unwrap_or(now);
            let (next, entry) = granted(&mission, wish, by, at);
            done.push(next.id.clone());
            tables.put(next);
            tables.logs.push(LogEntry {
                id: LogId::new(&self.clock),
                mission_id: entry.mission_id,
                event: entry.event,
                details: entry.details,
                timestamp: entry.at,
                session_id: None,
            });
        }
        Ok(done)
    }
}
