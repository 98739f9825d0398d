//! A pool of connections that works through PgBouncer in transaction mode.
//!
//! Statements are sent typed and unnamed (`query_typed`), so nothing is prepared on a server
//! connection that the next statement may not get again. Small ones that run all the time are
//! prepared once and kept where a [`Listener`] has seen that connections are the server's own
//! sessions; planning is most of their time. Each call has a time limit; a connection
//! that did not answer in time, or whose caller went away, is thrown away, because its answer may
//! still be under way, and the server is asked to stop.

mod connect;
mod copy;
mod listen;
mod transaction;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use jiff::Timestamp;
use secrecy::SecretString;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::error::is_outdated;
use crate::{Clock, Error, Result, Schema};

pub use copy::CopyIn;
pub use listen::Listener;
pub use transaction::{Copying, Transaction};

/// A parameter with its type, as `query_typed` wants them.
pub type Param<'a> = (&'a (dyn ToSql + Sync), Type);

const CALL_LIMIT: Duration = Duration::from_secs(30);
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Pg {
    pool: Pool,
    dial: Arc<connect::Dial>,
    schema: Schema,
    clock: Clock,
    limit: Duration,
    /// Whether connections are known to be sessions, with no pooler in between.
    sessions: Arc<AtomicBool>,
}

impl std::fmt::Debug for Pg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pg").field("host", &self.dial.host).finish_non_exhaustive()
    }
}

impl Pg {
    /// Connects, trying again for `patience` while the server does not answer, and takes over
    /// the server's time.
    pub async fn connect(url: &SecretString, schema: Schema, patience: Duration) -> Result<Self> {
        let dial = connect::Dial::parse(url)?;
        let pool = dial.pool()?;
        let (dial, clock, limit) = (Arc::new(dial), Clock::theirs(), CALL_LIMIT);
        let pg = Self { pool, dial, schema, clock, limit, sessions: Arc::default() };
        connect::until_it_answers(&pg, patience).await?;
        Ok(pg)
    }

    /// The same pool with another time limit for each call than 30 s.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn host(&self) -> &str {
        &self.dial.host
    }

    /// Runs one statement and returns its rows. A single statement is its own transaction.
    pub async fn query(
        &self,
        operation: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>> {
        self.query_once(operation, &self.schema.apply(sql), params, false).await
    }

    /// The same for a statement that is small and runs all the time: it is planned once, for any
    /// parameters, where that is possible.
    pub async fn query_prepared(
        &self,
        operation: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>> {
        let sql = self.schema.apply(sql);
        let prepare = self.sessions.load(Ordering::Relaxed);
        match self.query_once(operation, &sql, params, prepare).await {
            // Nothing has run: what was prepared is gone, or is for a table as it was before.
            Err(Error::Postgres { source, .. }) if prepare && is_outdated(&source) => {
                self.query_once(operation, &sql, params, false).await
            }
            answer => answer,
        }
    }

    async fn query_once(
        &self,
        operation: &'static str,
        sql: &str,
        params: &[Param<'_>],
        prepare: bool,
    ) -> Result<Vec<Row>> {
        let call = Call { client: Some(self.client().await?), dial: &self.dial };
        match tokio::time::timeout(self.limit, call.run(sql, params, prepare)).await {
            Ok(rows) => rows.map_err(|source| Error::Postgres { operation, source }),
            Err(_) => {
                Err(Error::Timeout { operation, host: self.dial.host.clone(), limit: self.limit })
            }
        }
    }

    /// A connection of the pool, for the few verbs that need several statements in a transaction.
    pub async fn client(&self) -> Result<Object> {
        self.pool.get().await.map_err(|error| self.dial.unreachable(&error))
    }

    /// Asks the server for its time and carries the clock on from there.
    pub async fn synchronise(&self) -> Result<Timestamp> {
        let rows = self.query("read the server's clock", "SELECT clock_timestamp()", &[]).await?;
        let time = match rows.first() {
            Some(row) => row.try_get(0).map_err(|source| Error::Postgres {
                operation: "read the server's clock",
                source,
            })?,
            None => self.clock.now(),
        };
        self.clock.set(time);
        Ok(time)
    }

    /// Notifications on `channel`: a hint that shortens a wait, never the only way to learn.
    pub fn listen(&self, channel: &str) -> Listener {
        Listener::start(self.clone(), self.schema.apply(channel).into_owned())
    }
}

/// A connection with a statement under way. Dropped before the answer, it leaves the pool.
struct Call<'a> {
    client: Option<Object>,
    dial: &'a connect::Dial,
}

impl Call<'_> {
    async fn run(
        mut self,
        sql: &str,
        params: &[Param<'_>],
        prepare: bool,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let Some(client) = &self.client else { return Ok(Vec::new()) };
        let answer = if prepare {
            prepared(client, sql, params).await
        } else {
            client.query_typed(sql, params).await
        };
        self.settle(answer.as_ref().err(), prepare);
        answer
    }

    /// The answer is there: the connection goes back to the pool, or out of it.
    fn settle(&mut self, error: Option<&tokio_postgres::Error>, prepared: bool) {
        if let (Some(client), Some(error)) = (self.client.take(), error)
            && (is_lost(error) || prepared && is_outdated(error))
        {
            // It may look alive for a moment yet: not for the next one.
            drop(Object::take(client));
        }
    }
}

async fn prepared(
    client: &Object,
    sql: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let types: Vec<Type> = params.iter().map(|(_, kind)| kind.clone()).collect();
    let statement = client.prepare_typed_cached(sql, &types).await?;
    let values: Vec<_> = params.iter().map(|(value, _)| *value).collect();
    client.query(&statement, &values).await
}

/// Whether the connection is gone, or about to be: trouble on the line, or the server said so.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_none_or(|state| state.code().starts_with("08") || state.code().starts_with("57P"))
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        let (token, tls) = (client.cancel_token(), self.dial.tls.clone());
        drop(Object::take(client));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // Reaches a server; PgBouncer forgets it, and there `statement_timeout` helps.
            runtime.spawn(tokio::time::timeout(CANCEL_LIMIT, async move {
                let _best_effort = token.cancel_query(tls).await;
            }));
        }
    }
}
