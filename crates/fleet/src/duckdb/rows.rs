//! Rows as they are read, and the columns of a row that a step may change.

use jiff::Timestamp;
use lavra_db::duckdb::types::Value;
use lavra_db::duckdb::{self, Connection, Row, params_from_iter};
use lavra_db::micros;
use serde::de::DeserializeOwned;

use super::{first, run, wrong};
use crate::model::{Mission, MissionId, Proxy, ProxyId, Worker, WorkerId};

/// Tables as they are read: without their secrets.
pub(super) const MISSIONS: &str = "public.missions";
pub(super) const WORKERS: &str = "(SELECT * EXCLUDE (api_key) FROM public.workers)";
pub(super) const PROXIES: &str = "(SELECT * EXCLUDE (password) FROM public.proxies)";
pub(super) const WRITERS: &str = "(SELECT * EXCLUDE (api_key) FROM public.writers)";

/// All of a table, oldest first.
pub(super) fn by_age(table: &str) -> String {
    format!("SELECT to_json(r)::VARCHAR FROM {table} r ORDER BY r.created_at, r.id")
}

/// Reads a row that is one column of JSON.
pub(super) fn read<T: DeserializeOwned>(row: &Row<'_>) -> duckdb::Result<T> {
    let text: String = row.get(0)?;
    serde_json::from_str(&text).map_err(wrong)
}

fn one<T: DeserializeOwned>(tx: &Connection, table: &str, id: &str) -> duckdb::Result<Option<T>> {
    let sql = format!("SELECT to_json(r)::VARCHAR FROM {table} r WHERE r.id = $1");
    first(tx, &sql, (id,), read)
}

pub(super) fn mission(tx: &Connection, id: &MissionId) -> duckdb::Result<Option<Mission>> {
    one(tx, MISSIONS, &id.0)
}

pub(super) fn worker(tx: &Connection, id: &WorkerId) -> duckdb::Result<Option<Worker>> {
    one(tx, WORKERS, &id.0)
}

pub(super) fn proxy(tx: &Connection, id: &ProxyId) -> duckdb::Result<Option<Proxy>> {
    one(tx, PROXIES, &id.0)
}

/// A column, and its value in a row.
struct Column<R> {
    name: &'static str,
    value: Of<R>,
}

enum Of<R> {
    Text(fn(&R) -> Option<String>),
    Whole(fn(&R) -> Option<i64>),
    Flag(fn(&R) -> bool),
    Time(fn(&R) -> Option<Timestamp>),
}

impl<R> Column<R> {
    fn of(&self, row: &R) -> Value {
        match self.value {
            Of::Text(value) => value(row).map_or(Value::Null, Value::Text),
            Of::Whole(value) => value(row).map_or(Value::Null, Value::BigInt),
            Of::Flag(value) => Value::Boolean(value(row)),
            Of::Time(value) => value(row).map_or(Value::Null, |time| Value::BigInt(micros(time))),
        }
    }

    /// How the parameter of this number is written into the column.
    fn set(&self, number: usize) -> String {
        match self.value {
            Of::Time(_) => format!("{} = make_timestamp(${number})", self.name),
            Of::Text(_) | Of::Whole(_) | Of::Flag(_) => format!("{} = ${number}", self.name),
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

const fn time<R>(name: &'static str, value: fn(&R) -> Option<Timestamp>) -> Column<R> {
    Column { name, value: Of::Time(value) }
}

/// All but the mission's id, what was asked for, and when.
const OF_A_MISSION: &[Column<Mission>] = &[
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
    text("held_by", |m| m.held_by.map(|id| id.to_string())),
];

/// The worker's state. What people set, and whose it is, is not a step's to change.
const OF_A_WORKER: &[Column<Worker>] = &[
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

pub(super) fn change_mission(
    tx: &Connection,
    before: &Mission,
    after: &Mission,
) -> duckdb::Result<()> {
    change(tx, "public.missions", &before.id.0, OF_A_MISSION, (before, after))
}

pub(super) fn change_worker(
    tx: &Connection,
    before: &Worker,
    after: &Worker,
) -> duckdb::Result<()> {
    change(tx, "public.workers", &before.id.0, OF_A_WORKER, (before, after))
}

/// Writes the columns that differ. The few ways in which rows change are as many statements.
fn change<R>(
    tx: &Connection,
    table: &str,
    id: &str,
    columns: &[Column<R>],
    (before, after): (&R, &R),
) -> duckdb::Result<()> {
    let mut params = vec![Value::Text(id.to_owned())];
    let mut sets = Vec::new();
    for column in columns {
        let value = column.of(after);
        if value != column.of(before) {
            params.push(value);
            sets.push(column.set(params.len()));
        }
    }
    if sets.is_empty() {
        return Ok(());
    }
    let sql = format!("UPDATE {table} SET {} WHERE id = $1", sets.join(", "));
    run(tx, &sql, params_from_iter(params)).map(|_| ())
}
