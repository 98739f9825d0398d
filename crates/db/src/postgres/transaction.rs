//! Several statements in one transaction, for the verbs that must look before they write.
//!
//! `BEGIN` travels with the first statement and `COMMIT` with the last one, so each costs no round
//! trip of its own. A transaction that is dropped before its end takes its connection with it: the
//! server rolls back, and nobody inherits a statement that is still under way.

use std::pin::Pin;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use deadpool_postgres::Object;
use futures_util::SinkExt;
use tokio_postgres::types::Type;
use tokio_postgres::{CopyInSink, Row};

use super::{Param, Pg};
use crate::{Error, Result};

/// A transaction under way. Nothing is sent before the first statement.
pub struct Transaction<'a> {
    pg: &'a Pg,
    operation: &'static str,
    client: Option<Object>,
    has_begun: bool,
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("operation", &self.operation).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Planned {
    Now,
    Once,
}

impl Pg {
    pub async fn transaction(&self, operation: &'static str) -> Result<Transaction<'_>> {
        let client = Some(self.client().await?);
        Ok(Transaction { pg: self, operation, client, has_begun: false })
    }
}

impl Transaction<'_> {
    pub async fn query(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.send(sql, params, Planned::Now, false).await
    }

    /// The same for a statement that runs all the time: it is planned once, where that is possible.
    pub async fn query_prepared(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.send(sql, params, Planned::Once, false).await
    }

    /// Begins a `COPY … FROM STDIN`, not as the first statement; `None` where that cannot be: behind a
    /// pooler.
    pub async fn copy(&mut self, sql: &str) -> Result<Option<Copying<'_>>> {
        if !self.pg.sessions.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(client) = &self.client else { return Ok(None) };
        let sink = self.within(client.copy_in(&*self.pg.schema.apply(sql))).await?;
        Ok(Some(Copying { transaction: self, sink: Box::pin(sink) }))
    }

    /// The last statement, and what it leaves is committed; nothing is if it fails.
    pub async fn finish(mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let rows = self.send(sql, params, Planned::Now, true).await?;
        self.client = None;
        Ok(rows)
    }

    pub async fn finish_prepared(mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let rows = self.send(sql, params, Planned::Once, true).await?;
        self.client = None;
        Ok(rows)
    }

    /// Ends it with nothing written.
    pub async fn rollback(mut self) -> Result<()> {
        if self.has_begun {
            let Some(client) = &self.client else { return Ok(()) };
            self.within(client.batch_execute("ROLLBACK")).await?;
        }
        self.client = None;
        Ok(())
    }

    async fn send(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        planned: Planned,
        is_last: bool,
    ) -> Result<Vec<Row>> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let Some(client) = &self.client else { return Ok(Vec::new()) };
        let sql = self.pg.schema.apply(sql);
        let types: Vec<Type> = params.iter().map(|(_, kind)| kind.clone()).collect();
        let values: Vec<_> = params.iter().map(|(value, _)| *value).collect();
        let prepares = planned == Planned::Once && self.pg.sessions.load(Ordering::Relaxed);
        let all = async {
            let mut statement = None;
            if prepares {
                statement = Some(client.prepare_typed_cached(&sql, &types).await?);
            }
            let ask = async {
                match &statement {
                    Some(statement) => client.query(statement, &values).await,
                    None => client.query_typed(&sql, params).await,
                }
            };
            let begin =
                async { if is_first { client.batch_execute("BEGIN").await } else { Ok(()) } };
            let commit =
                async { if is_last { client.batch_execute("COMMIT").await } else { Ok(()) } };
            // Requests of one connection are answered in the order in which they are first polled.
            let (has_begun, rows, has_committed) = tokio::join!(biased; begin, ask, commit);
            has_begun?;
            let rows = rows?;
            has_committed?;
            Ok(rows)
        };
        self.within(all).await
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let (operation, limit) = (self.operation, self.pg.limit);
        match tokio::time::timeout(limit, work).await {
            Ok(answer) => answer.map_err(|source| Error::Postgres { operation, source }),
            Err(_) => Err(Error::Timeout { operation, host: self.pg.host().to_owned(), limit }),
        }
    }
}

/// A COPY under way: the server works on what it has while more is made.
pub struct Copying<'t> {
    transaction: &'t Transaction<'t>,
    sink: Pin<Box<CopyInSink<Bytes>>>,
}

impl std::fmt::Debug for Copying<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copying").finish_non_exhaustive()
    }
}

impl Copying<'_> {
    pub async fn send(&mut self, bytes: Bytes) -> Result<()> {
        self.transaction.within(self.sink.send(bytes)).await
    }

    /// How many rows were copied. Without it none are.
    pub async fn end(mut self) -> Result<u64> {
        self.transaction.within(self.sink.as_mut().finish()).await
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take()
            && self.has_begun
        {
            drop(Object::take(client));
        }
    }
}
