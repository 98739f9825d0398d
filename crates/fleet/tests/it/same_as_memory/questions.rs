//! What both are asked, and that they have the same rows.

use jiff::Timestamp;
use jiff::civil::date;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{
    Checkpoint, EventKind, LogEntry, LogId, MediaType, MissionId, MissionStatus, Waiting,
};
use lavra_fleet::report::Window;
use lavra_fleet::store::{Filter, LogFilter, Reads, Store, Thing};

use super::{Both, Dice, proxy_id, worker_id, writer};

impl Both {
    pub(super) async fn compare(&self) {
        let all = Filter::default();
        let missions = self.duck.missions(&all, None, usize::MAX).await.unwrap();
        let missions: Vec<_> = missions.into_iter().map(|m| self.mission(m)).collect();
        assert_eq!(missions, self.memory.missions(&all, None, usize::MAX).await.unwrap());
        let workers = self.duck.workers().await.unwrap();
        let workers: Vec<_> = workers.into_iter().map(|w| self.worker(w)).collect();
        assert_eq!(workers, self.memory.workers().await.unwrap());
        assert_eq!(self.duck.proxies().await.unwrap(), self.memory.proxies().await.unwrap());
        assert_eq!(self.duck.writers().await.unwrap(), self.memory.writers().await.unwrap());
        assert_eq!(self.duck.counts().await.unwrap(), self.memory.counts().await.unwrap());
        let filter = LogFilter { limit: usize::MAX, ..LogFilter::default() };
        self.compare_log(&filter).await;
    }

    async fn compare_log(&self, filter: &LogFilter) {
        let on_duckdb = nameless(self.duck.log(filter).await.unwrap());
        assert_eq!(on_duckdb, nameless(self.memory.log(filter).await.unwrap()), "{filter:?}");
    }

    /// The questions that change nothing.
    pub(super) async fn ask(&self, dice: &mut Dice) {
        let ids: Vec<MissionId> =
            self.memory.tables().missions.keys().step_by(2).cloned().collect();
        let filters = [
            Filter { ids: ids.iter().take(1).cloned().collect(), ..Filter::default() },
            Filter { ids, ..Filter::default() },
            Filter { status: dice.pick(MissionStatus::ALL).copied(), ..Filter::default() },
            Filter { in_bank: Some(dice.roll(2) == 0), ..Filter::default() },
            Filter { checkpoint: dice.pick(Checkpoint::ALL).copied(), ..Filter::default() },
            Filter { error_code: dice.pick(ErrorCode::ALL).copied(), ..Filter::default() },
            Filter { waiting: dice.pick(Waiting::ALL).copied(), ..Filter::default() },
            Filter { search: Some("error1".into()), ..Filter::default() },
            Filter {
                media_type: Some(MediaType::All),
                language: Some("pt".into()),
                ..Filter::default()
            },
            Filter { worker: Some(worker_id(dice.roll(3))), ..Filter::default() },
            Filter {
                from: Some(date(2025, 1, 2)),
                to: Some(date(2025, 1, 4)),
                ..Filter::default()
            },
        ];
        for filter in filters {
            let before = self.memory.tables().missions.keys().next_back().cloned();
            let missions = self.duck.missions(&filter, before.clone(), 5).await.unwrap();
            let missions: Vec<_> = missions.into_iter().map(|m| self.mission(m)).collect();
            let expected = self.memory.missions(&filter, before, 5).await.unwrap();
            assert_eq!(missions, expected, "{filter:?}");
        }
        let every = LogFilter { limit: usize::MAX, ..LogFilter::default() };
        let some = self.memory.log(&every).await.unwrap();
        let middle = some.get(some.len() / 2);
        let mission = middle.and_then(|entry| entry.mission_id.clone());
        let at = middle.map(|entry| entry.timestamp);
        for filter in [
            LogFilter { mission, ..every.clone() },
            LogFilter { without_mission: true, oldest_first: true, ..every.clone() },
            LogFilter {
                events: vec![EventKind::SessionFailed, EventKind::ScrapeFailed],
                ..every.clone()
            },
            LogFilter { worker: Some(worker_id(0)), since: at, ..every.clone() },
            LogFilter { error_code: Some(ErrorCode::Error100), until: at, ..every.clone() },
            LogFilter { before: at.map(|at| (at, LogId(String::new()))), ..every.clone() },
            LogFilter { after: at.map(|at| (at, LogId("z".into()))), ..every.clone() },
            LogFilter { session: middle.and_then(|e| e.session_id.clone()), ..every.clone() },
            LogFilter { proxy: Some("p-0".into()), ..every.clone() },
        ] {
            self.compare_log(&filter).await;
        }
        let since = at.unwrap_or(self.now);
        let window = Window::since(since);
        self.same(async |store| {
            let mut failures = store.failures(window, None, 1000).await?;
            for failure in &mut failures {
                failure.log_id = LogId(String::new());
            }
            Ok(failures)
        })
        .await;
        self.same(|store| store.performance(window)).await;
        self.same(|store| store.troubled_proxies(window)).await;
        for thing in [Thing::Worker(worker_id(0)), Thing::Proxy(proxy_id(0)), writer(0)] {
            self.same(|store| store.secret(&thing)).await;
        }
        self.same(<dyn Store>::settings).await;
        self.same(<dyn Store>::control).await;
    }
}

/// Without their ids, in an order of their own where times are equal.
fn nameless(entries: Vec<LogEntry>) -> Vec<String> {
    let mut entries: Vec<(Timestamp, String)> = entries
        .into_iter()
        .map(|entry| {
            let time = entry.timestamp;
            (time, format!("{:?}", LogEntry { id: LogId(String::new()), ..entry }))
        })
        .collect();
    entries.sort();
    entries.into_iter().map(|(_, entry)| entry).collect()
}
