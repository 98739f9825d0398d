//! Rows as they are read, and the columns of a row that a step may change.

use jiff::Timestamp;
use lavra_db::duckdb::types::Value;
use lavra_db::duckdb::{self, Connection, Row, params_from_iter};
use lavra_db::micros;
use lavra_tasks::model::ProcessId;
use serde::de::DeserializeOwned;

use super::{all, first, run, set, wrong};
use crate::model::{Mission, Proxy, Worker, Writer};

/// A table whose rows are read as JSON, without their secrets.
pub(super) trait Table: DeserializeOwned {
    const READ: &'static str;
    fn id(&self) -> &str;
}

impl Table for Mission {
    const READ: &'static str = "public.missions";

    fn id(&self) -> &str {
        &self.id.0
    }
}

impl Table for Worker {
    const READ: &'static str = "(SELECT * EXCLUDE (api_key) FROM public.workers)";

    fn id(&self) -> &str {
        &self.id.0
    }
}

impl Table for Proxy {
    const READ: &'static str = "(SELECT * EXCLUDE (password) FROM public.proxies)";

    fn id(&self) -> &str {
        &self.id.0
    }
}

impl Table for Writer {
    const READ: &'static str = "(SELECT * EXCLUDE (api_key) FROM public.writers)";

    fn id(&self) -> &str {
        &self.id.0
    }
}

/// All of a table, oldest first.
pub(super) fn by_age<R: Table>() -> String {
    format!("SELECT to_json(r)::VARCHAR FROM {} r ORDER BY r.created_at, r.id", R::READ)
}

/// Reads a row that is one column of JSON.
pub(super) fn read<T: DeserializeOwned>(row: &Row<'_>) -> duckdb::Result<T> {
    let text: String = row.get(0)?;
    serde_json::from_str(&text).map_err(wrong)
}

pub(super) fn one<R: Table>(tx: &Connection, id: &str) -> duckdb::Result<Option<R>> {
    let sql = format!("SELECT to_json(r)::VARCHAR FROM {} r WHERE r.id = $1", R::READ);
    first(tx, &sql, (id,), read)
}

pub(super) fn some<R: Table>(tx: &Connection, ids: &[&str]) -> duckdb::Result<Vec<R>> {
    let sql = format!(
        "SELECT to_json(r)::VARCHAR FROM {} r WHERE r.id IN (SELECT unnest($1::JSON::VARCHAR[]))",
        R::READ
    );
    all(tx, &sql, (set(ids)?,), read)
}

/// A table whose rows a step changes.
pub(super) trait State: Table + 'static {
    const NAME: &'static str;
    const COLUMNS: &'static [Column<Self>];
}

/// A column, and its value in a row.
pub(super) struct Column<R> {
    name: &'static str,
    value: Of<R>,
}

enum Of<R> {
    Text(fn(&R) -> Option<String>),
    Whole(fn(&R) -> Option<i64>),
    Flag(fn(&R) -> bool),
    Process(fn(&R) -> Option<ProcessId>),
    Time(fn(&R) -> Option<Timestamp>),
}

impl<R> Column<R> {
    fn of(&self, row: &R) -> Value {
        match self.value {
            Of::Text(value) => value(row).map_or(Value::Null, Value::Text),
            Of::Whole(value) => value(row).map_or(Value::Null, Value::BigInt),
            Of::Flag(value) => Value::Boolean(value(row)),
            Of::Process(value) => value(row).map_or(Value::Null, |id| Value::Text(id.to_string())),
            Of::Time(value) => value(row).map_or(Value::Null, |time| Value::BigInt(micros(time))),
        }
    }

    /// How `value`, of the type below, is written into the column.
    fn set(&self, value: &str) -> String {
        let name = self.name;
        match self.value {
            Of::Text(_) | Of::Whole(_) | Of::Flag(_) => format!("{name} = {value}"),
            Of::Process(_) => format!("{name} = {value}::UUID"),
            Of::Time(_) => format!("{name} = make_timestamp({value})"),
        }
    }

    fn kind(&self) -> &'static str {
        match self.value {
            Of::Text(_) | Of::Process(_) => "VARCHAR",
            Of::Whole(_) | Of::Time(_) => "BIGINT",
            Of::Flag(_) => "BOOLEAN",
        }
    }
}

const fn text<R>(name: &'static str, value: fn(&R) -> Option<String>) -> Column<R> {
    Column { name, value: Of::Text(value) }
}

const fn whole<R>(name: &'static str, value: fn(&R) -> Option<i64>) -> Column<R> {
    Column { name, value: Of::Whole(value) }
}

const fn flag<R>(name: &'static str, value: fn(&R) -> bool) -> Column<R> {
    Column { name, value: Of::Flag(value) }
}

const fn process<R>(name: &'static str, value: fn(&R) -> Option<ProcessId>) -> Column<R> {
    Column { name, value: Of::Process(value) }
}

const fn time<R>(name: &'static str, value: fn(&R) -> Option<Timestamp>) -> Column<R> {
    Column { name, value: Of::Time(value) }
}

/// All but the mission's id, what was asked for, and when.
impl State for Mission {
    const NAME: &'static str = "public.missions";
    const COLUMNS: &'static [Column<Self>] = &[
        text("status", |m| Some(m.status.to_string())),
        text("checkpoint", |m| m.checkpoint.map(|word| word.to_string())),
        text("worker_id", |m| m.worker_id.as_ref().map(|id| id.0.clone())),
        text("worker_job_id", |m| m.worker_job_id.clone()),
        text("worker_data_url", |m| m.worker_data_url.clone()),
        text("proxy_used", |m| m.proxy_used.clone()),
        text("writer_job_id", |m| m.writer_job_id.clone()),
        whole("ads_count", |m| m.ads_count.map(i64::from)),
        text("error_code", |m| m.error_code.map(|code| code.to_string())),
        text("error_message", |m| m.error_message.clone()),
        whole("retry_count", |m| Some(m.retry_count.into())),
        time("queued_at", |m| m.queued_at),
        time("started_at", |m| m.started_at),
        time("finished_at", |m| m.finished_at),
        whole("attempts", |m| Some(m.attempts.into())),
        time("phase_started_at", |m| m.phase_started_at),
        text("writer_id", |m| m.writer_id.as_ref().map(|id| id.0.clone())),
        time("writer_accepted_at", |m| m.writer_accepted_at),
        whole("writer_processed", |m| m.writer_processed),
        time("writer_moved_at", |m| m.writer_moved_at),
        time("next_attempt_at", |m| m.next_attempt_at),
        text("waiting", |m| m.waiting.map(|word| word.to_string())),
        time("told_at", |m| m.told_at),
        time("logged_at", |m| m.logged_at),
        whole("token", |m| m.token),
        process("held_by", |m| m.held_by),
    ];
}

/// The worker's state. What people set, and whose it is, is not a step's to change.
impl State for Worker {
    const NAME: &'static str = "public.workers";
    const COLUMNS: &'static [Column<Self>] = &[
        text("status", |w| Some(w.status.to_string())),
        whole("session_count", |w| Some(w.session_count.into())),
        text("current_mission_id", |w| w.current_mission_id.as_ref().map(|id| id.0.clone())),
        time("updated_at", |w| Some(w.updated_at)),
        text("last_proxy_id", |w| w.last_proxy_id.as_ref().map(|id| id.0.clone())),
        text("session_id", |w| w.session_id.as_ref().map(|id| id.0.clone())),
        time("session_started_at", |w| w.session_started_at),
        flag("session_accepted", |w| w.session_accepted),
        whole("session_errors", |w| Some(w.session_errors.into())),
        text("error_code", |w| w.error_code.map(|code| code.to_string())),
        text("error_message", |w| w.error_message.clone()),
        time("next_attempt_at", |w| w.next_attempt_at),
        text("close_reason", |w| w.close_reason.map(|word| word.to_string())),
        time("close_by", |w| w.close_by),
        flag("unclosed", |w| w.unclosed),
        time("stop_by", |w| w.stop_by),
        time("unreachable_since", |w| w.unreachable_since),
        text("waiting", |w| w.waiting.map(|word| word.to_string())),
    ];
}

/// Writes the columns that differ between rows and what they become. The few ways in which rows
/// change are as many statements.
pub(super) fn change<R: State>(tx: &Connection, changes: &[(&R, &R)]) -> duckdb::Result<()> {
    let differs = |column: &&Column<R>| {
        changes.iter().any(|(before, after)| column.of(before) != column.of(after))
    };
    let columns: Vec<&Column<R>> = R::COLUMNS.iter().filter(differs).collect();
    if columns.is_empty() {
        return Ok(());
    }
    match changes {
        [(_, after)] => change_one(tx, &columns, after),
        _ => change_some(tx, &columns, changes),
    }
}

fn change_one<R: State>(tx: &Connection, columns: &[&Column<R>], after: &R) -> duckdb::Result<()> {
    let mut params = vec![Value::Text(after.id().to_owned())];
    let mut sets = Vec::new();
    for column in columns {
        let value = column.of(after);
        // As a parameter it would be of another type than a value, and the plan be made anew.
        if value == Value::Null {
            sets.push(format!("{} = NULL", column.name));
        } else {
            params.push(value);
            sets.push(column.set(&format!("${}", params.len())));
        }
    }
    let sql = format!("UPDATE {} SET {} WHERE id = $1", R::NAME, sets.join(", "));
    run(tx, &sql, params_from_iter(params))
}

fn change_some<R: State>(
    tx: &Connection,
    columns: &[&Column<R>],
    changes: &[(&R, &R)],
) -> duckdb::Result<()> {
    let row = |(_, after): &(&R, &R)| {
        let mut row = serde_json::Map::new();
        row.insert("id".into(), after.id().into());
        for column in columns {
            row.insert(column.name.into(), json(column.of(after)));
        }
        row
    };
    let rows: Vec<_> = changes.iter().map(row).collect();
    let sets: Vec<String> =
        columns.iter().map(|column| column.set(&format!("x.{}", column.name))).collect();
    let kinds: Vec<String> =
        columns.iter().map(|column| format!(r#""{}": "{}""#, column.name, column.kind())).collect();
    let sql = format!(
        r#"UPDATE {} t SET {}
           FROM (SELECT unnest(from_json($1::JSON, '[{{"id": "VARCHAR", {}}}]'),
                               recursive := true)) x
           WHERE t.id = x.id"#,
        R::NAME,
        sets.join(", "),
        kinds.join(", "),
    );
    run(tx, &sql, (set(&rows)?,))
}

/// The values that a [`Column`] has.
fn json(value: Value) -> serde_json::Value {
    match value {
        Value::Text(text) => text.into(),
        Value::BigInt(number) => number.into(),
        Value::Boolean(flag) => flag.into(),
        _ => serde_json::Value::Null,
    }
}
