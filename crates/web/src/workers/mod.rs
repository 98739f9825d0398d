//! Workers in other languages: they claim tasks, say that they live, and report.
//!
//! ```text
//! POST /tasks:claim ─► work ─► POST /tasks/{id}:progress … ─► :complete | :fail | :release
//!        ▲               │
//!        └── POST /workers/{id}:heartbeat every 3 s, naming all that is held
//! ```
//!
//! A task that was claimed belongs to its worker by a token, which every report names. A report
//! that comes too late (the task was cancelled, taken over, has ended) is refused with
//! `task_lost`: stop, say nothing more. A worker that is silent for 10 s is taken for dead.

mod claim;
mod heartbeat;
mod report;
mod roster;

use std::time::Duration;

use lavra_tasks::machine::Happening;
use lavra_tasks::model::{TaskId, Token};
use lavra_tasks::{Error, Tasks};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::verbs::Verbs;

pub(crate) use claim::LONGEST_WAIT;
pub(crate) use roster::Roster;

/// How often a worker should say that it lives.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// How many types a worker may know: each stays known from then on.
const MOST_TYPES: usize = 100;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(claim::claim))
        .verb(routes!(heartbeat::beat))
        .verb(routes!(heartbeat::retire))
        .verb(routes!(report::progress))
        .verb(routes!(report::complete))
        .verb(routes!(report::fail))
        .verb(routes!(report::release))
}

/// Gives tasks back as if they had not been claimed. What this cannot is given back after the
/// worker's next heartbeats, or taken over by the keeper.
async fn give_back(tasks: &Tasks, unwanted: Vec<(TaskId, Token)>) {
    for (id, token) in unwanted {
        match tasks.report(id, token, Happening::Interrupt, None, None).await {
            Ok(_) | Err(Error::Lost(_) | Error::NoSuchTask(_)) => {}
            Err(error) => tracing::warn!(%error, task = %id, "it was not given back"),
        }
    }
}
