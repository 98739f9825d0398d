//! Missions: made, wished for, looked at, and what the log says of them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Fleet, is_there};
use crate::bank::{self, Wanted};
use crate::error::{Error, Result};
use crate::machine::mission::{Wish, refusal};
use crate::model::{LogEntry, LogId, Mission, MissionId};
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::store::{Filter, LogFilter, NewMission};

/// What came of missions that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub added: Vec<MissionId>,
    /// Those that were there already.
    pub known: usize,
    pub queued: usize,
}

/// What came of a wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    pub done: Vec<MissionId>,
    /// Those that were named and could not be had, with the reason.
    pub refused: Vec<(MissionId, String)>,
}

impl Fleet {
    /// Makes the missions that are not there yet; into the queue, if `queue`.
    pub async fn add(&self, wanted: &Wanted, queue: bool) -> Result<Made> {
        let missions = bank::missions(wanted, self.store.clock())?;
        self.add_all(missions, queue).await
    }

    pub async fn import(&self, csv: &str, queue: bool) -> Result<Made> {
        let missions = bank::from_csv(csv, self.store.clock())?;
        self.add_all(missions, queue).await
    }

    async fn add_all(&self, missions: Vec<NewMission>, queue: bool) -> Result<Made> {
        let asked = missions.len();
        let added = self.store.add_missions(missions, false).await?;
        let known = asked - added.len();
        let mut queued = 0;
        if queue && !added.is_empty() {
            let filter = Filter { ids: added.clone(), ..Filter::default() };
            queued = self.wish(&filter, Wish::Queue, "user").await?.done.len();
        }
        Ok(Made { added, known, queued })
    }

    /// A new mission like one that there was.
    pub async fn copy(&self, id: &MissionId, queue: bool) -> Result<MissionId> {
        self.copy_as(MissionId::new(self.store.clock()), id, queue).await
    }

    /// The same under an id of the caller's: once, however often it is asked for.
    pub async fn copy_as(&self, new: MissionId, id: &MissionId, queue: bool) -> Result<MissionId> {
        let old = self.mission(id).await?;
        if !is_there(self.mission(&new).await)? {
            let copy = NewMission {
                id: new.clone(),
                date_start: old.date_start,
                date_end: old.date_end,
                media_type: old.media_type,
                languages: old.languages,
            };
            self.store.add_missions(vec![copy], true).await?;
        }
        if queue {
            let filter = Filter { ids: vec![new.clone()], ..Filter::default() };
            self.wish(&filter, Wish::Queue, "user").await?;
        }
        Ok(new)
    }

    pub async fn mission(&self, id: &MissionId) -> Result<Mission> {
        let filter = Filter { ids: vec![id.clone()], ..Filter::default() };
        let found = self.store.missions(&filter, None, 1).await?.pop();
        found.ok_or_else(|| Error::NotFound { what: "mission", id: id.0.clone() })
    }

    pub async fn missions(
        &self,
        filter: &Filter,
        before: Option<MissionId>,
        limit: usize,
    ) -> Result<Vec<Mission>> {
        self.store.missions(filter, before, limit).await
    }

    /// Queues, cancels or retries all missions of the filter for which it may be. Those that are
    /// named by id and were not changed come back with the reason.
    pub async fn wish(&self, filter: &Filter, wish: Wish, by: &str) -> Result<Granted> {
        let done = self.store.wish(filter, wish, by).await?;
        self.bell.work();
        let mut refused = Vec::new();
        if !filter.ids.is_empty() && done.len() < filter.ids.len() {
            let named: std::collections::HashSet<&MissionId> = done.iter().collect();
            let missing: Vec<MissionId> =
                filter.ids.iter().filter(|id| !named.contains(id)).cloned().collect();
            let limit = missing.len();
            let ids = Filter { ids: missing.clone(), ..Filter::default() };
            let found = self.store.missions(&ids, None, limit).await?;
            for id in missing {
                let why = match found.iter().find(|mission| mission.id == id) {
                    None => "is not there".to_owned(),
                    Some(mission) => refusal(mission, wish)
                        .unwrap_or("does not fit the other conditions")
                        .to_owned(),
                };
                refused.push((id, why));
            }
        }
        Ok(Granted { done, refused })
    }

    /// Queues, cancels or retries one mission, and shows what it is now.
    pub async fn wish_one(&self, id: &MissionId, wish: Wish, by: &str) -> Result<Mission> {
        let before = self.mission(id).await?;
        let filter = Filter { ids: vec![id.clone()], ..Filter::default() };
        let granted = self.wish(&filter, wish, by).await?;
        match granted.refused.into_iter().next() {
            Some((id, why)) => Err(Error::Refused { id, why }),
            None => self.mission(&before.id).await,
        }
    }

    pub async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>> {
        self.store.log(filter).await
    }

    /// Missions that failed, newest first, older than the entry `before`.
    pub async fn failures(
        &self,
        window: Window,
        before: Option<(Timestamp, LogId)>,
        limit: usize,
    ) -> Result<Vec<Failure>> {
        self.store.failures(window, before, limit).await
    }

    /// What each worker did.
    pub async fn performance(&self, window: Window) -> Result<Vec<Performance>> {
        self.store.performance(window).await
    }

    /// What went wrong behind each proxy.
    pub async fn troubled_proxies(&self, window: Window) -> Result<Vec<ProxyTrouble>> {
        self.store.troubled_proxies(window).await
    }
}
