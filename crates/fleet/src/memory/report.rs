//! The reports of the specification.

use std::cmp::Reverse;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use super::{Memory, Tables};
use crate::error::Result;
use crate::model::{EventKind, LogEntry, LogId, Proxy, Worker};
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::store::Reports;

fn says(entry: &LogEntry, name: &str, value: &str) -> bool {
    entry.details.get(name).and_then(Value::as_str) == Some(value)
}

#[async_trait]
impl Reports for Memory {
    async fn failures(
        &self,
        window: Window,
        before: Option<(Timestamp, LogId)>,
        limit: usize,
    ) -> Result<Vec<Failure>> {
        Ok(self.tables().failures(window, before.as_ref(), limit))
    }

    async fn performance(&self, window: Window) -> Result<Vec<Performance>> {
        Ok(self.tables().performance(window))
    }

    async fn troubled_proxies(&self, window: Window) -> Result<Vec<ProxyTrouble>> {
        Ok(self.tables().troubled_proxies(window))
    }
}

impl Tables {
    fn within(&self, window: Window) -> impl Iterator<Item = &LogEntry> {
        self.logs.iter().filter(move |entry| window.has(entry.timestamp))
    }

    fn failures(
        &self,
        window: Window,
        before: Option<&(Timestamp, LogId)>,
        limit: usize,
    ) -> Vec<Failure> {
        let is_meant = |entry: &&LogEntry| {
            entry.event == EventKind::MissionFailed
                && before.is_none_or(|(time, id)| (entry.timestamp, &entry.id) < (*time, id))
        };
        let mut entries: Vec<&LogEntry> = self.within(window).filter(is_meant).collect();
        entries.sort_by_key(|entry| Reverse((entry.timestamp, &entry.id)));
        let failures = entries.into_iter().filter_map(|entry| {
            let mission = self.missions.get(entry.mission_id.as_ref()?)?;
            Some(Failure {
                id: mission.id.clone(),
                status: mission.status,
                error_code: mission.error_code.map(|code| code.to_string()),
                error_message: mission.error_message.clone(),
                retry_count: mission.retry_count,
                failed_at: entry.timestamp,
                details: entry.details.clone(),
                log_id: entry.id.clone(),
            })
        });
        failures.take(limit).collect()
    }

    fn performance(&self, window: Window) -> Vec<Performance> {
        let of = |worker: &Worker| {
            let (mut done, mut failed, mut durations) = (0, 0, Vec::new());
            for entry in self.within(window).filter(|e| says(e, "worker_id", &worker.id.0)) {
                match entry.event {
                    EventKind::ScrapeCompleted => {
                        done += 1;
                        // What is no number of milliseconds counts for no average.
                        let duration = entry.details.get("duration_ms");
                        durations.extend(duration.and_then(Value::as_u64));
                    }
                    EventKind::ScrapeFailed => failed += 1,
                    _ => {}
                }
            }
            let average = durations.iter().sum::<u64>() as f64 / durations.len() as f64;
            (done + failed > 0).then(|| Performance {
                worker_name: worker.name.clone(),
                completed_count: done,
                failed_count: failed,
                avg_duration_ms: (!durations.is_empty()).then_some(average),
                worker_id: worker.id.clone(),
            })
        };
        self.workers.values().filter_map(of).collect()
    }

    fn troubled_proxies(&self, window: Window) -> Vec<ProxyTrouble> {
        let mut proxies: Vec<&Proxy> = self.proxies.values().collect();
        proxies.sort_by_key(|proxy| (Reverse(proxy.fail_count), &proxy.id));
        let count = |proxy: &Proxy, event| {
            let of_event = self.within(window).filter(|entry| entry.event == event);
            of_event.filter(|entry| says(entry, "proxy_name", proxy.label())).count() as i64
        };
        let trouble = |proxy: &Proxy| ProxyTrouble {
            name: proxy.name.clone(),
            host: proxy.host.clone(),
            fail_count: proxy.fail_count,
            active: proxy.active,
            session_failures: count(proxy, EventKind::SessionFailed),
            rotations: count(proxy, EventKind::ProxyRotated),
            proxy_id: proxy.id.clone(),
        };
        proxies.into_iter().map(trouble).collect()
    }
}
