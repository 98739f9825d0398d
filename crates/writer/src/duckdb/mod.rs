//! Jobs and tables in a DuckDB file. The owner of the file is alone: no job is anyone else's.

mod catalog;
mod jobs;
mod nested;
mod once;
mod sql;
mod write;

use lavra_db::Duck;

use crate::config::Config;

#[derive(Clone, Debug)]
pub(crate) struct DuckDb {
    duck: Duck,
    /// The only tables that are written, where there are any.
    tables: Vec<String>,
}

impl DuckDb {
    pub(crate) fn new(duck: Duck, config: &Config) -> Self {
        Self { duck, tables: config.access.tables.clone() }
    }
}
