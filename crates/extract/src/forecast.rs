//! What a run would do, before anyone asks the source for anything.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lavra_db::Database;

use crate::error::Result;
use crate::model::{Cell, Extraction, ExtractionId, Status};
use crate::plan::plan;
use crate::store::Planned;
use crate::task::Order;
use crate::{has_tables, store_of};

/// A task of the plan, and what it would cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub planned: Planned,
    pub page_size: i64,
    /// What it is now; nothing where it is not in the table yet.
    pub status: Option<Status>,
    /// How many requests there will be at least. Where totals are not known, the one that asks.
    pub requests: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// By date and name.
    pub tasks: Vec<Expected>,
    /// The most requests at once.
    pub in_flight: usize,
}

impl Forecast {
    pub fn new_tasks(&self) -> usize {
        self.tasks.iter().filter(|task| task.status.is_none()).count()
    }

    pub fn requests(&self) -> i64 {
        self.tasks.iter().map(|task| task.requests).sum()
    }
}

/// What a run of `order` would plan on `database` as it stands.
pub async fn forecast(database: &Database, order: &Order) -> Result<Forecast> {
    let source = order.source()?;
    let now = database.clock().now();
    let planned = plan(&source, &order.wanted(), now)?;
    let mut there: BTreeMap<ExtractionId, (Extraction, i64)> = BTreeMap::new();
    if has_tables(database, &source.name).await? {
        let store = store_of(database, &source.name);
        let id = |cell: &Cell| ExtractionId::new(&cell.endpoint_name, cell.data_date);
        let grid = store.grid(&planned.scope).await?;
        let mut pages: BTreeMap<_, _> = grid.iter().map(|cell| (id(cell), cell.pages)).collect();
        for task in store.tasks(&planned.scope).await? {
            let stored = pages.remove(&task.task_id).unwrap_or(0);
            there.insert(task.task_id.clone(), (task, stored));
        }
    }
    let tasks = planned.tasks.into_iter().map(|planned| {
        let series = source.series(&planned.endpoint_name);
        let page_size = series.map_or(0, |series| series.endpoint.page_size);
        let known = there.get(&planned.task_id);
        let requests = known.map_or(1, |(task, pages)| requests(task, *pages, order.refresh, now));
        let status = known.map(|(task, _)| task.status);
        Expected { planned, page_size, status, requests }
    });
    Ok(Forecast { tasks: tasks.collect(), in_flight: source.limits.in_flight })
}

/// At least so many: what a run does to a task is what `Run::reopen` decides.
fn requests(task: &Extraction, pages: i64, refresh: bool, now: Timestamp) -> i64 {
    let all = task.total_pages.unwrap_or(0);
    match task.status {
        Status::Complete if task.is_final && !refresh => 0,
        Status::Complete => all.max(1),
        Status::Pending | Status::Discovering => 1,
        Status::Fetching | Status::Partial => (all - pages).max(1),
        Status::Failed => i64::from(task.next_attempt_at.is_none_or(|at| at <= now)),
    }
}
