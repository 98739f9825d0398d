//! What people look at.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{Row, Tables, order};
use crate::missing::Missing;
use crate::model::{Cell, ExtractionId, PageFailure, Status};
use crate::store::{Outcome, Progress, Scope, Slice, Volume};

impl Row {
    pub(super) fn progress(&self) -> Progress {
        Progress {
            task: self.task.clone(),
            pages: self.pages.len() as i64,
            records: self.pages.values().map(|page| page.stored.records).sum(),
            bytes: self.pages.values().map(|page| page.bytes).sum(),
        }
    }

    fn cell(&self) -> Cell {
        let Progress { task, mut pages, mut records, .. } = self.progress();
        if task.status == Status::Complete {
            (pages, records) = (task.total_pages.unwrap_or(0), task.total_records.unwrap_or(0));
        }
        Cell {
            endpoint_name: task.endpoint_name,
            data_date: task.data_date,
            status: task.status,
            total_pages: task.total_pages,
            total_records: task.total_records,
            pages,
            records,
        }
    }
}

impl Tables {
    pub(super) fn volume(&self) -> Volume {
        self.tasks.values().map(Row::progress).fold(Volume::default(), |all, row| Volume {
            pages: all.pages + row.pages,
            records: all.records + row.records,
            bytes: all.bytes + row.bytes,
        })
    }

    pub(super) fn statuses(&self) -> BTreeMap<Status, i64> {
        let mut counts = BTreeMap::new();
        for row in self.tasks.values() {
            *counts.entry(row.task.status).or_default() += 1;
        }
        counts
    }

    pub(super) fn slice(&self, scope: &Scope, slice: &Slice) -> Vec<Progress> {
        let is_meant = |row: &&Row| {
            let (day, name) = order(&row.task);
            let is_after = slice.after.as_ref().is_none_or(|(d, n)| (day, name) > (*d, n.as_str()));
            is_after && slice.status.is_none_or(|status| row.task.status == status)
        };
        let rows = self.of(scope).into_iter().filter(is_meant);
        rows.take(slice.limit).map(Row::progress).collect()
    }

    pub(super) fn grid(&self, scope: &Scope) -> Vec<Cell> {
        let mut cells: Vec<Cell> = self.of(scope).into_iter().map(Row::cell).collect();
        cells.sort_by(|a, b| (&a.endpoint_name, a.data_date).cmp(&(&b.endpoint_name, b.data_date)));
        cells
    }

    /// Runs of missing pages, in their order.
    pub(super) fn gaps(&self, id: &ExtractionId) -> Vec<RangeInclusive<i64>> {
        let Some(row) = self.tasks.get(id) else { return Vec::new() };
        let response = row.pages.values().find_map(|page| self.responses.get(&page.response));
        let size = response.map_or(1, |response| response.page_size);
        let mut gaps = Vec::new();
        for window in &row.windows {
            let Some(totals) = window.totals else { continue };
            let base = window.base;
            let stored = row.pages.range(base + 1..=base + totals.pages);
            let stored = stored.map(|(page, known)| (page - base, known.stored)).collect();
            let missing = Missing::of(totals, size, row.task.generation, &stored);
            gaps.extend(missing.ranges().map(|run| run.start() + base..=run.end() + base));
        }
        gaps.sort_by_key(|run| *run.start());
        gaps
    }

    pub(super) fn failures(&self, id: &ExtractionId, pages: &[i64]) -> Vec<PageFailure> {
        let mut last = BTreeMap::new();
        for response in self.responses.values() {
            let of = ExtractionId::new(&response.endpoint_name, response.data_date);
            if let Outcome::Failed { error } = &response.outcome
                && of == *id
                && pages.contains(&response.page)
            {
                let (page, error) = (response.page, error.clone());
                let code = response.code.into();
                last.insert(page, PageFailure { page, at: response.at, code, error });
            }
        }
        last.into_values().collect()
    }
}
