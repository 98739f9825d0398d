//! The log: only ever appended to, and linked to a mission once a session has one.

use lavra_db::duckdb::types::{TimeUnit, Value};
use lavra_db::duckdb::{self, Connection};
use lavra_db::{Clock, micros};

use super::{run, wrong};
use crate::machine::Entry;
use crate::model::{LogId, MissionId, SessionId, Worker};

pub(super) fn append<'a>(
    tx: &Connection,
    clock: &Clock,
    entries: impl Iterator<Item = &'a Entry>,
) -> duckdb::Result<()> {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    let mut appender = tx.appender_to_db("mission_logs", "public")?;
    for entry in entries {
        let details = serde_json::to_string(&entry.details).map_err(wrong)?;
        appender.append_row(duckdb::params![
            LogId::new(clock).0,
            entry.mission_id.as_ref().map(|id| &id.0),
            entry.event.as_str(),
            details,
            Value::Timestamp(TimeUnit::Microsecond, micros(entry.at)),
            entry.session_id.as_ref().map(|id| &id.0),
        ])?;
    }
    appender.flush()
}

/// The entries of a session that belong to no mission become this one's. None is older than the
/// session, so that only the end of the log is looked at.
pub(super) fn link(
    tx: &Connection,
    session: &SessionId,
    worker: Option<&Worker>,
    mission: &MissionId,
) -> duckdb::Result<()> {
    let since = worker.and_then(|worker| worker.session_started_at).map_or(0, micros);
    let sql = "UPDATE public.mission_logs SET mission_id = $3
               WHERE timestamp >= make_timestamp($1) AND session_id = $2 AND mission_id IS NULL";
    run(tx, sql, (since, &session.0, &mission.0))
}
