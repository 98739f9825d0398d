//! The store on a DuckDB file. The writer thread is the lock: a job reads, decides and writes, and
//! nothing comes in between. Sets travel as JSON text, times as microseconds.

mod reading;
mod webhook;

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::statement::{all, change, exists, run, set, wrong};
use lavra_db::{Clock, Duck, micros};

use crate::error::Result;
use crate::model::{Webhook, WebhookId};
use crate::store::{Edit, Edited, New, Outcome, Reading, Store};

/// Webhooks in a DuckDB file.
#[derive(Clone, Debug)]
pub struct DuckDb {
    duck: Duck,
    late: Duration,
}

impl DuckDb {
    pub fn new(duck: Duck, late: Duration) -> Self {
        Self { duck, late }
    }

    fn now(&self) -> i64 {
        micros(self.duck.clock().now())
    }

    /// The statement with this file's schema, which also says whose webhooks are meant.
    fn sql(&self, sql: &str) -> String {
        self.duck.schema().apply(sql).into_owned()
    }
}

#[async_trait]
impl Store for DuckDb {
    fn clock(&self) -> &Clock {
        self.duck.clock()
    }

    async fn add(&self, new: New) -> Result<Edited> {
        self.insert(new).await
    }

    async fn edit(&self, id: WebhookId, edit: Edit) -> Result<Edited> {
        self.update(id, edit).await
    }

    async fn remove(&self, id: WebhookId) -> Result<Edited> {
        self.delete(id).await
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>> {
        self.select_one(id).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>> {
        self.select_all().await
    }

    async fn note(&self, id: WebhookId, sealed: &str, outcome: &Outcome) -> Result<()> {
        self.note_outcome(id, sealed, outcome).await
    }

    async fn read(&self, limit: usize) -> Result<Option<Reading>> {
        self.read_on(limit).await
    }

    async fn told(&self, reading: &Reading) -> Result<()> {
        self.move_to(reading).await
    }

    async fn pass_by(&self) -> Result<()> {
        self.move_to_the_end().await
    }
}
