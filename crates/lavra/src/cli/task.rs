//! `lavra task`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use lavra_tasks::model::Status;

use super::value::time;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Create a task: `lavra task create http --payload '{"url": "https://example.org"}'`.
    Create(TaskCreate),
    /// List tasks, newest first.
    List(TaskList),
    /// Show one task.
    Show {
        /// The id of the task.
        id: String,
    },
    /// The newest events of a task.
    Events {
        /// The id of the task.
        id: String,
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 100)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
    },
    /// The result of a task.
    Result {
        /// The id of the task.
        id: String,
    },
    /// What the task was given.
    Input {
        /// The id of the task.
        id: String,
    },
    /// Put a failed or cancelled task back into the queue.
    Retry {
        /// The id of the task.
        id: String,
        /// Only if the task is still at this version.
        #[arg(long, value_name = "N")]
        if_version: Option<i32>,
    },
    /// Cancel a task; a worker that runs it is told to stop.
    Cancel {
        /// The id of the task.
        id: String,
        /// Only if the task is still at this version.
        #[arg(long, value_name = "N")]
        if_version: Option<i32>,
    },
    /// Wait until tasks have ended; exit code 3 if one did not end well.
    Wait {
        /// The ids of the tasks.
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TaskCreate {
    /// The task type: http, cleanup, extract, or one of your own workers.
    #[arg(value_name = "TYPE")]
    pub(crate) kind: String,
    /// What the task is given, as JSON; `-` reads it from stdin.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) payload: String,
    /// The highest is run first, then the oldest [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i16>,
    /// A compact JSON object that stays with the task.
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
    /// The same type and payload again answers the first task.
    #[arg(long)]
    pub(crate) idempotent: bool,
    /// How often it is tried again [default: its type's, usually 3].
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<i32>,
    /// Seconds before it may run.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) delay: Option<u64>,
    /// Wait until it has ended.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskList {
    /// Only of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Only with this status.
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.map(Status::as_str)))]
    pub(crate) status: Option<String>,
    /// Created at or after this time, such as 2025-01-31T08:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) after: Option<Timestamp>,
    /// Created before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) before: Option<Timestamp>,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) limit: u16,
    /// Go on where the last page ended, with what it said.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}
