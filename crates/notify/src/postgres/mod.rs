//! The store on PostgreSQL. Each verb that writes is one statement, so one transaction, and works
//! through a pooler; sets travel as arrays. `'kodus_workflow'` in a statement becomes the name of
//! this database's schema, and says whose webhooks are meant.

mod reading;
mod webhook;

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::FromSql;
use lavra_db::tokio_postgres::{self, Row};
use lavra_db::{Clock, Pg};

use crate::error::{Error, Result};
use crate::model::{Webhook, WebhookId};
use crate::store::{Edit, Edited, New, Outcome, Reading, Store};

/// Webhooks on a PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Postgres {
    pg: Pg,
    late: Duration,
}

impl Postgres {
    pub fn new(pg: Pg, late: Duration) -> Self {
        Self { pg, late }
    }
}

#[async_trait]
impl Store for Postgres {
    fn clock(&self) -> &Clock {
        self.pg.clock()
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

fn get<'row, T: FromSql<'row>>(operation: &'static str, row: &'row Row, place: usize) -> Result<T> {
    row.try_get(place).map_err(|source| failed(operation, source))
}

fn failed(operation: &'static str, source: tokio_postgres::Error) -> Error {
    Error::Database(lavra_db::Error::Postgres { operation, source })
}
