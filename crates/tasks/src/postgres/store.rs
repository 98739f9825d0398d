//! The trait, verb by verb, over the functions of this folder.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::Clock;
use serde_json::Value;

use super::Postgres;
use crate::error::Result;
use crate::model::{
    Claimed, DeadLetterId, Event, OutboxId, ProcessId, Task, TaskId, TaskResult, Token,
};
use crate::store::{
    Along, Announcement, Claim, Cursor, DeadLetter, Dossier, Expiry, ListFilter, Lost, Made,
    NewRow, Process, Schedule, Store, Waiting, Write, Written,
};

#[async_trait]
impl Store for Postgres {
    fn clock(&self) -> &Clock {
        self.pg.clock()
    }

    async fn create(&self, rows: Vec<NewRow>, along: Along) -> Result<Vec<Made>> {
        self.insert(rows, along).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>> {
        self.take(claim).await
    }

    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        self.change(writes).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<Task>> {
        self.one(id).await
    }

    async fn input(&self, id: TaskId) -> Result<Option<Value>> {
        self.payload(id).await
    }

    async fn result(&self, id: TaskId) -> Result<Option<TaskResult>> {
        self.outcome(id).await
    }

    async fn list(&self, filter: ListFilter) -> Result<Vec<Task>> {
        self.page(filter).await
    }

    async fn newest_events(&self, id: TaskId, limit: usize) -> Result<Vec<Event>> {
        self.latest(id, limit).await
    }

    async fn events_since(&self, id: TaskId, after: i32, limit: usize) -> Result<Vec<Event>> {
        self.later(id, after, limit).await
    }

    async fn stream_since(&self, cursor: Cursor, limit: usize) -> Result<Vec<Event>> {
        self.stream(cursor, limit).await
    }

    async fn stream_end(&self) -> Result<Cursor> {
        self.end().await
    }

    async fn waiting(&self) -> Result<Vec<Waiting>> {
        self.backlog().await
    }

    async fn beat(&self, process: Process, held: Vec<(TaskId, Token)>) -> Result<Vec<Lost>> {
        self.pulse(process, held).await
    }

    async fn retire(&self, process: ProcessId) -> Result<()> {
        self.leave(process).await
    }

    async fn orphans(&self, stale: Duration, limit: usize) -> Result<Vec<Task>> {
        self.orphaned(stale, limit).await
    }

    async fn strays(
        &self,
        process: ProcessId,
        held: Vec<TaskId>,
        age: Duration,
    ) -> Result<Vec<Task>> {
        self.astray(process, held, age).await
    }

    async fn overdue_stops(&self, limit: usize) -> Result<Vec<Task>> {
        self.unconfirmed(limit).await
    }

    async fn declare(&self, kinds: Vec<String>) -> Result<()> {
        self.make_known(kinds).await
    }

    async fn declared(&self) -> Result<Vec<String>> {
        self.known().await
    }

    async fn take_announcements(&self, lease: Duration, limit: usize) -> Result<Vec<Announcement>> {
        self.lease_announcements(lease, limit).await
    }

    async fn announced(&self, ids: Vec<OutboxId>) -> Result<()> {
        self.confirm_announcements(ids).await
    }

    async fn postpone(&self, ids: Vec<OutboxId>, delay: Duration) -> Result<()> {
        self.postpone_announcements(ids, delay).await
    }

    async fn announce_again(&self, kind: String, age: Duration, limit: usize) -> Result<usize> {
        self.reannounce(kind, age, limit).await
    }

    async fn outbox_depth(&self) -> Result<i64> {
        self.outbox_size().await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.all_schedules().await
    }

    async fn put_schedule(&self, schedule: Schedule) -> Result<()> {
        self.set_schedule(schedule).await
    }

    async fn remove_schedule(&self, name: String) -> Result<bool> {
        self.drop_schedule(name).await
    }

    async fn fire(
        &self,
        name: String,
        from: Timestamp,
        to: Timestamp,
        row: NewRow,
        announce: bool,
    ) -> Result<bool> {
        self.fire_once(name, from, to, row, announce).await
    }

    async fn dead_letters(
        &self,
        before: Option<DeadLetterId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>> {
        self.letters(before, limit).await
    }

    async fn dead_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>> {
        self.one_letter(id).await
    }

    async fn bury(&self, letter: DeadLetter) -> Result<()> {
        self.keep_letter(letter).await
    }

    async fn remove_dead_letter(&self, id: DeadLetterId) -> Result<bool> {
        self.drop_letter(id).await
    }

    async fn expired(&self, expiry: Expiry, limit: usize) -> Result<Vec<Task>> {
        self.old(expiry, limit).await
    }

    async fn dossiers(&self, tasks: Vec<Task>) -> Result<Vec<Dossier>> {
        self.files(tasks).await
    }

    async fn remove(&self, tasks: Vec<(TaskId, i32)>) -> Result<usize> {
        self.delete(tasks).await
    }

    async fn sweep_history(&self, before: Timestamp, limit: usize) -> Result<usize> {
        self.trim(before, limit).await
    }
}
