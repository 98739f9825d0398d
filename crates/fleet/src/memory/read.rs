//! What people look at: missions, counts, the log, and the lists of workers, proxies and writers.

use async_trait::async_trait;
use serde_json::Value;

use super::Memory;
use crate::error::Result;
use crate::model::{LogEntry, Mission, MissionId, Proxy, Worker, Writer};
use crate::store::{Counts, Filter, LogFilter, Reads};

#[async_trait]
impl Reads for Memory {
    async fn missions(
        &self,
        filter: &Filter,
        before: Option<MissionId>,
        limit: usize,
    ) -> Result<Vec<Mission>> {
        let tables = self.tables();
        let older = |mission: &&Mission| before.as_ref().is_none_or(|id| mission.id < *id);
        let mut found: Vec<Mission> = tables.matching(filter).filter(older).cloned().collect();
        found.reverse();
        found.truncate(limit);
        Ok(found)
    }

    async fn counts(&self) -> Result<Counts> {
        Ok(self.tables().counts)
    }

    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>> {
        let tables = self.tables();
        let text = |entry: &LogEntry, name: &str| {
            entry.details.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let mut found: Vec<LogEntry> = tables
            .logs
            .iter()
            .filter(|entry| {
                filter.mission.as_ref().is_none_or(|id| entry.mission_id.as_ref() == Some(id))
                    && (!filter.without_mission || entry.mission_id.is_none())
                    && (filter.events.is_empty() || filter.events.contains(&entry.event))
                    && filter
                        .worker
                        .as_ref()
                        .is_none_or(|id| text(entry, "worker_id").as_deref() == Some(&id.0))
                    && filter
                        .proxy
                        .as_ref()
                        .is_none_or(|name| text(entry, "proxy_name").as_ref() == Some(name))
                    && filter
                        .session
                        .as_ref()
                        .is_none_or(|id| entry.session_id.as_ref() == Some(id))
                    && filter.error_code.is_none_or(|code| {
                        text(entry, "error_code").as_deref() == Some(code.as_str())
                    })
                    && filter.since.is_none_or(|time| entry.timestamp >= time)
                    && filter.until.is_none_or(|time| entry.timestamp < time)
                    && filter
                        .before
                        .as_ref()
                        .is_none_or(|(time, id)| (entry.timestamp, &entry.id) < (*time, id))
                    && filter
                        .after
                        .as_ref()
                        .is_none_or(|(time, id)| (entry.timestamp, &entry.id) > (*time, id))
            })
            .cloned()
            .collect();
        found.sort_by(|a, b| (a.timestamp, &a.id).cmp(&(b.timestamp, &b.id)));
        if !filter.oldest_first {
            found.reverse();
        }
        found.truncate(filter.limit);
        Ok(found)
    }

    async fn workers(&self) -> Result<Vec<Worker>> {
        let mut all: Vec<Worker> = self.tables().workers.values().cloned().collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(all)
    }

    async fn proxies(&self) -> Result<Vec<Proxy>> {
        let mut all: Vec<Proxy> = self.tables().proxies.values().cloned().collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(all)
    }

    async fn writers(&self) -> Result<Vec<Writer>> {
        let mut all: Vec<Writer> = self.tables().writers.values().cloned().collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(all)
    }
}
