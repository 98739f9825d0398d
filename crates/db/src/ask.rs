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

const ONE_SELECT: &str = "it must be one SELECT: nothing is changed by it";

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
        Some(&SqlState::SYNTAX_ERROR) if !begins_as_a_select(sql) => {
            Error::Config(ONE_SELECT.into())
        }
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
            if let Err(refusal) = one_select(&serde_json::from_str(&parsed).unwrap_or_default()) {
                return Ok(Err(refusal));
            }
            let wrapped = format!(
                "SELECT CAST(to_json({ROW}) AS VARCHAR) FROM ({sql}\n) AS {ROW} LIMIT {limit}"
            );
            let lines = |sql: &str| -> duckdb::Result<Vec<String>> {
                connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
            };
            match lines(&wrapped) {
                Err(error) if error.to_string().contains(ROW) => {
                    Ok(Err(as_it_was_typed(connection, &sql, &error)))
                }
                answered => answered.map(Ok),
            }
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

/// Whether a text that was read is one SELECT; if not, why it is refused.
fn one_select(read: &Value) -> Result<(), String> {
    let text = |name: &str| read.get(name).and_then(Value::as_str);
    let statements = read.get("statements").and_then(Value::as_array);
    if read.get("error").and_then(Value::as_bool) == Some(false) {
        return match statements {
            Some(statements) if statements.len() == 1 => Ok(()),
            _ => Err(ONE_SELECT.into()),
        };
    }
    Err(match (text("error_type"), text("error_message")) {
        (Some("parser"), Some(message)) => message.to_owned(),
        _ => ONE_SELECT.into(),
    })
}

/// What is wrong with a query, without what stands around it here.
fn as_it_was_typed(connection: &Connection, sql: &str, error: &duckdb::Error) -> String {
    let plain = connection.prepare(sql).err().map(|error| error.to_string());
    plain.unwrap_or_else(|| {
        let text = error.to_string();
        text.split("\n\nLINE ").next().unwrap_or_default().to_owned()
    })
}

/// Whether the first word is one that a question begins with.
fn begins_as_a_select(sql: &str) -> bool {
    let word: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
    word.is_empty()
        || ["select", "with", "values", "table"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
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
