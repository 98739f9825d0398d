//! Jobs and tables in PostgreSQL, also behind a pooler in transaction mode.

mod catalog;
mod doubts;
mod jobs;
mod lanes;
mod rows;
mod sql;
mod write;

use std::sync::Arc;

use lavra_db::{Listener, Pg};

use crate::config::Config;

#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    pg: Pg,
    /// The only tables that are written, where there are any.
    tables: Vec<String>,
    /// As long as it hears something, connections are sessions, and COPY can be used.
    _listener: Arc<Listener>,
}

impl Postgres {
    pub(crate) fn new(pg: Pg, config: &Config) -> Self {
        let tables = config.access.tables.clone();
        let listener = Arc::new(pg.listen("lavra_writer"));
        Self { pg: pg.with_limit(config.timing.statement), tables, _listener: listener }
    }
}
