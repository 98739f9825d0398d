//! Which sources there are: those that come with the program, and those that have tables here.

use std::collections::BTreeMap;

use lavra_db::duckdb::Connection;
use lavra_db::{Database, Migration};

use crate::error::Result;
use crate::migrations::migrations;
use crate::model::Status;
use crate::source::{Endpoint, Source};
use crate::store_of;

/// What the name of a source's control table ends with.
const SUFFIX: &str = "_extraction_tasks";

/// A source that can be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    /// What is known of one that comes with the program; others are defined where they are used.
    pub built_in: Option<BuiltIn>,
    /// How many tasks are in which state, where something of it was ever extracted.
    pub tasks: Option<BTreeMap<Status, i64>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    pub title: String,
    /// The names that the plan has for its endpoints.
    pub endpoints: Vec<String>,
}

/// All sources that can be named here, by name.
pub async fn sources(database: &Database) -> Result<Vec<Known>> {
    let mut all: BTreeMap<String, Known> = BTreeMap::new();
    for name in Source::built_in_names() {
        let Some(source) = Source::built_in(name).transpose()? else { continue };
        let series = source.endpoints.iter().flat_map(Endpoint::all_series);
        let endpoints = series.map(|series| series.name()).collect();
        let built_in = Some(BuiltIn { title: source.title.clone(), endpoints });
        all.insert(source.name.clone(), Known { name: source.name, built_in, tasks: None });
    }
    for name in with_tables(database).await? {
        let tasks = Some(store_of(database, &name).statuses().await?);
        let known = Known { name: name.clone(), built_in: None, tasks: None };
        all.entry(name).or_insert(known).tasks = tasks;
    }
    Ok(all.into_values().collect())
}

/// Whether a database has tables of `source`: whether something of it was ever extracted there.
pub async fn has_tables(database: &Database, source: &str) -> Result<bool> {
    Ok(with_tables(database).await?.iter().any(|name| name == source))
}

/// The migrations of all sources that have tables here: what those who look at one ask of them may be newer
/// than its last run.
pub async fn migrations_here(database: &Database) -> Result<Vec<Migration>> {
    let tables = tables(database).await?;
    // Another program's table of that name is its own.
    let is_ours = |name: &String| tables.contains(&format!("{name}_pages"));
    Ok(names(&tables).filter(is_ours).flat_map(|name| migrations(&name)).collect())
}

/// The sources that have tables in a database.
async fn with_tables(database: &Database) -> Result<Vec<String>> {
    Ok(names(&tables(database).await?).collect())
}

fn names(tables: &[String]) -> impl Iterator<Item = String> {
    let names = tables.iter().filter_map(|table| table.strip_suffix(SUFFIX));
    names.filter(|name| is_name(name)).map(str::to_owned)
}

async fn tables(database: &Database) -> Result<Vec<String>> {
    let operation = "look for sources";
    Ok(match database {
        Database::Duck(duck) => {
            let read = |connection: &Connection| {
                let sql = "SELECT table_name FROM duckdb_tables()
                           WHERE database_name = current_database() AND schema_name = 'psa'";
                let mut statement = connection.prepare(sql)?;
                statement.query_map([], |row| row.get(0))?.collect()
            };
            duck.read(operation, read).await?
        }
        Database::Postgres(pg) => {
            let sql = "SELECT table_name::text FROM information_schema.tables
                       WHERE table_schema = 'psa' AND table_type = 'BASE TABLE'";
            let rows = pg.query(operation, sql, &[]).await?;
            let names: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
            names.map_err(|source| lavra_db::Error::Postgres { operation, source })?
        }
    })
}

/// What can name a source, and stand in the name of a table.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !text.is_empty() && text.chars().all(is_part)
}
