//! One statement on a connection to a DuckDB file, planned once and kept.

use duckdb::{Connection, Params, Result, Row};
use serde::Serialize;

/// Runs one statement to its end, and reads every row with `read`.
pub fn all<T, P: Params>(
    connection: &Connection,
    sql: &str,
    params: P,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params, read)?;
    rows.collect()
}

/// The first row, if there is one.
pub fn first<T, P: Params>(
    connection: &Connection,
    sql: &str,
    params: P,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    Ok(all(connection, sql, params, read)?.into_iter().next())
}

/// Whether there is a row.
pub fn exists<P: Params>(connection: &Connection, sql: &str, params: P) -> Result<bool> {
    Ok(first(connection, sql, params, |_| Ok(()))?.is_some())
}

/// Runs one statement that returns nothing.
pub fn run<P: Params>(connection: &Connection, sql: &str, params: P) -> Result<()> {
    change(connection, sql, params).map(|_| ())
}

/// The same, and says how many rows it changed.
pub fn change<P: Params>(connection: &Connection, sql: &str, params: P) -> Result<usize> {
    connection.prepare_cached(sql)?.execute(params)
}

/// A set as the JSON text that a statement takes: lists cannot be bound.
pub fn set<T: Serialize>(rows: &[T]) -> Result<String> {
    serde_json::to_string(rows).map_err(wrong)
}

/// What a job cannot make sense of.
pub fn wrong(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> duckdb::Error {
    duckdb::Error::ToSqlConversionFailure(error.into())
}
