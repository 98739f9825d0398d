//! Tasks in few words.

use std::time::Duration;

use lavra_tasks::machine::{Happening, Snapshot, next};
use lavra_tasks::model::{Claimed, Event, EventId, ProcessId, Task, TaskId};
use lavra_tasks::store::{Along, Claim, Cursor, Guard, Key, Made, NewRow, Process, Write, Written};
use serde_json::json;
use uuid::Uuid;

use super::World;

pub(crate) const QUIET: Along = Along { announce: None, ring: false };
pub(crate) const ANNOUNCED: Along = Along { announce: Some(Duration::from_secs(10)), ring: false };
/// More than DuckDB has in one vector.
pub(crate) const MANY: usize = 2500;

/// The fingerprint or the input hash number `n`.
pub(crate) fn hash(n: u32) -> String {
    format!("{n:064x}")
}

pub(crate) fn key(text: &str, fingerprint: u32) -> Key {
    Key { key: text.to_owned(), fingerprint: hash(fingerprint) }
}

/// A guard by everything that is known of the task.
pub(crate) fn guard(task: &Task) -> Guard {
    Guard { status: task.status, token: Some(task.token), version: Some(task.version) }
}

pub(crate) fn fail(retry_in: Option<u64>) -> Happening {
    Happening::Fail { error: "boom".into(), retry_in: retry_in.map(Duration::from_secs) }
}

pub(crate) fn step(progress: i16, state: &str) -> Happening {
    Happening::Step { progress, state: state.into(), detail: None }
}

/// The row of a process that knows the type `a`.
pub(crate) fn living(id: ProcessId) -> Process {
    Process { id, name: "test".into(), kinds: vec!["a".into()] }
}

pub(crate) const CANCEL: Happening = Happening::Cancel { stop_within: Duration::from_secs(30) };

impl World {
    pub(crate) fn row(&self, kind: &str) -> NewRow {
        NewRow {
            id: TaskId(self.clock().new_id()),
            event: EventId(self.clock().new_id()),
            kind: kind.to_owned(),
            priority: 1,
            metadata: "{}".into(),
            payload: json!({ "n": 1 }).to_string(),
            input_hash: None,
            max_retries: 3,
            delay: None,
            detail: json!({ "action": "create" }).to_string(),
            key: None,
        }
    }

    /// Makes the rows, which must all be new, and returns their ids.
    pub(crate) async fn make(&self, rows: Vec<NewRow>) -> Vec<TaskId> {
        let ids = rows.iter().map(|row| row.id).collect();
        let made = self.create(rows, QUIET).await.unwrap();
        assert!(made.iter().all(|made| *made == Made::New), "{made:?}");
        ids
    }

    pub(crate) async fn make_one(&self, kind: &str) -> TaskId {
        self.make(vec![self.row(kind)]).await[0]
    }

    pub(crate) async fn make_many(&self, kind: &str, count: usize) -> Vec<TaskId> {
        self.make((0..count).map(|_| self.row(kind)).collect()).await
    }

    pub(crate) fn process(&self) -> ProcessId {
        ProcessId(self.clock().new_id())
    }

    pub(crate) async fn take(&self, kinds: &[&str], limit: usize) -> Vec<Claimed> {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        self.claim(Claim { process: self.process(), kinds, limit }).await.unwrap()
    }

    /// A new task of type `a`, and its claim.
    pub(crate) async fn running(&self) -> Claimed {
        let id = self.make_one("a").await;
        let claimed = self.take(&["a"], 1).await.remove(0);
        assert_eq!(claimed.id, id, "another task was waiting");
        claimed
    }

    pub(crate) async fn read(&self, id: TaskId) -> Task {
        self.task(id).await.unwrap().unwrap()
    }

    /// What the machine makes of the task as it is now, guarded by all of it.
    pub(crate) async fn decide(&self, id: TaskId, happening: &Happening) -> Write {
        let task = self.read(id).await;
        Write {
            id,
            guard: guard(&task),
            steps: Vec::new(),
            next: next(&Snapshot::from(&task), happening, self.clock().now()).unwrap(),
            metadata: None,
            result: None,
            announce: false,
        }
    }

    pub(crate) async fn write_one(&self, write: Write) -> Written {
        self.write(vec![write]).await.unwrap()[0]
    }

    /// Lets it happen, and returns the task after it.
    pub(crate) async fn happen(&self, id: TaskId, happening: &Happening) -> Task {
        let write = self.decide(id, happening).await;
        let written = self.write_one(write).await;
        assert!(matches!(written, Written::Applied { .. }), "{happening:?} was refused");
        self.read(id).await
    }

    /// All events of a task in order.
    pub(crate) async fn history(&self, id: TaskId) -> Vec<Event> {
        self.events_since(id, -1, 10_000).await.unwrap()
    }

    /// The whole stream, as soon as it shows everything: on a server, any transaction that is
    /// under way anywhere holds it back.
    pub(crate) async fn stream(&self) -> Vec<Event> {
        let start = Cursor { transaction: 0, event: EventId(Uuid::nil()) };
        let stored = self.count("SELECT count(*) FROM kodus_workflow.task_events").await;
        for _ in 0..1000 {
            let all = self.stream_since(start, 10_000).await.unwrap();
            if all.len() as i64 == stored {
                return all;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the stream does not show all of {stored} events");
    }
}
