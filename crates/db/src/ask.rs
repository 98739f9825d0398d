//! Questions that a person asks in SQL: one SELECT, read-only, as columns and rows of JSON.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use duckdb::Connection;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use tokio_postgres::error::SqlState;

use crate::{Database, Duck, Error, Pg, Result};

const LIMIT: Duration = Duration::from_secs(60);

/// A row as a whole. A column of the same name would be taken for it, so none is likely to have it.
const ROW: &str = "lavra_whole_row";

/// The answer to a question: rows in the order of the columns.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Answer {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// Whether there were more rows than asked for.
    pub truncated: bool,
}

impl Database {
    /// Runs one SELECT that can change nothing, and returns at most `limit` rows.
    pub async fn ask(&self, sql: &str, limit: usize) -> Result<Answer> {
        self.ask_within(LIMIT, sql, limit).await
    }

    /// The same with another time limit than a minute.
    pub async fn ask_within(&self, time: Duration, sql: &str, limit: usize) -> Result<Answer> {
        let sql = sql.trim().trim_end_matches(';').trim();
        if sql.is_empty() {
            return Err(Error::Config("the query is empty".into()));
        }
        let lines = match self {
            Self::Postgres(pg) => ask_postgres(pg, time, sql, limit + 1).await?,
            Self::Duck(duck) => ask_duck(duck, time, sql, limit + 1).await?,
        };
        let mut answer = Answer { truncated: lines.len() > limit, ..Answer::default() };
        for line in lines.iter().take(limit) {
            let Ordered(fields) = serde_json::from_str(line).map_err(Error::thread)?;
            if answer.columns.is_empty() {
                answer.columns = fields.iter().map(|(name, _)| name.clone()).collect();
            }
            answer.rows.push(fields.into_iter().map(|(_, value)| value).collect());
        }
        Ok(answer)
    }
}

/// A read-only transaction refuses every write; the extended protocol takes one statement only.
async fn ask_postgres(pg: &Pg, time: Duration, sql: &str, limit: usize) -> Result<Vec<String>> {
    let operation = "answer the query";
    let failed = |source: tokio_postgres::Error| match source.code() {
        Some(&SqlState::QUERY_CANCELED) => too_long(time),
        _ => Error::Postgres { operation, source },
    };
    let mut client = pg.client().await?;
    let transaction = client.build_transaction().read_only(true).start().await.map_err(failed)?;
    let limits = format!("SET LOCAL statement_timeout = {}", time.as_millis());
    transaction.batch_execute(&limits).await.map_err(failed)?;
    let wrapped = format!("SELECT row_to_json({ROW})::text FROM ({sql}\n) AS {ROW} LIMIT {limit}");
    let rows = transaction.query_typed(&wrapped, &[]).await.map_err(failed)?;
    let lines = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
    lines.map_err(failed)
}

/// DuckDB itself says whether the text is SELECTs and nothing else.
async fn ask_duck(duck: &Duck, time: Duration, sql: &str, limit: usize) -> Result<Vec<String>> {
    let operation = "answer the query";
    let sql = sql.to_owned();
    let begun = Instant::now();
    let found = duck
        .read(operation, move |connection| {
            let _watched = Watch::start(connection, time);
            let parsed: String = connection.query_row(
                "SELECT CAST(json_serialize_sql(CAST($1 AS VARCHAR)) AS VARCHAR)",
                [&sql],
                |row| row.get(0),
            )?;
            let parsed: Value = serde_json::from_str(&parsed).unwrap_or_default();
            if parsed.get("error").and_then(Value::as_bool) != Some(false) {
                let text = parsed.get("error_message").and_then(Value::as_str);
                return Ok(Err(text.unwrap_or("only a SELECT can be asked").to_owned()));
            }
            let wrapped = format!(
                "SELECT CAST(to_json({ROW}) AS VARCHAR) FROM ({sql}\n) AS {ROW} LIMIT {limit}"
            );
            let mut statement = connection.prepare(&wrapped)?;
            let lines: duckdb::Result<Vec<String>> =
                statement.query_map([], |row| row.get(0))?.collect();
            lines.map(Ok)
        })
        .await;
    match found {
        Ok(found) => found.map_err(Error::Config),
        Err(Error::Duck { source, .. })
            if begun.elapsed() >= time && source.to_string().contains("Interrupted") =>
        {
            Err(too_long(time))
        }
        Err(error) => Err(error),
    }
}

fn too_long(time: Duration) -> Error {
    Error::Config(format!("the query ran for longer than {time:?} and was ended: ask for less"))
}

/// Interrupts what runs on a connection for longer than its time; there are few readers, and
/// one that never comes back is missed.
struct Watch {
    _ends: mpsc::Sender<()>,
}

impl Watch {
    fn start(connection: &Connection, time: Duration) -> Self {
        let (ends, ended) = mpsc::channel();
        let running = connection.interrupt_handle();
        std::thread::spawn(move || {
            if ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                running.interrupt();
            }
        });
        Self { _ends: ends }
    }
}

/// The fields of an object in the order in which they stand.
struct Ordered(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Ordered;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Ordered(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
