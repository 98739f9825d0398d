//! The fleet's tables behind a server, for what only time would bring about.

use std::sync::Arc;

use jiff::Timestamp;
use lavra_db::Database;
use lavra_fleet::machine::{Entry, Step};
use lavra_fleet::model::{EventKind, MissionId};
use lavra_fleet::store::Store;
use lavra_fleet::{DuckDb, Postgres};
use serde_json::Value;

use crate::support::Server;

pub(super) fn fleet(server: &Server) -> Arc<dyn Store> {
    match &server.database {
        Database::Duck(duck) => Arc::new(DuckDb::new(duck.clone())),
        Database::Postgres(pg) => Arc::new(Postgres::new(pg.clone())),
    }
}

pub(super) fn entry(
    mission: Option<&str>,
    event: EventKind,
    details: Value,
    at: Timestamp,
) -> Entry {
    let Value::Object(details) = details else { panic!("details are an object") };
    Entry { mission_id: mission.map(MissionId::from), session_id: None, event, details, at }
}

/// Writes entries to the log.
pub(super) async fn log(server: &Server, logs: Vec<Entry>) {
    let step = Step { logs, ..Step::default() };
    assert_eq!(fleet(server).apply(vec![step]).await.unwrap(), [true]);
}
