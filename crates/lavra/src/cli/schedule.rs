//! `lavra schedule`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    /// List schedules, and when each is next.
    List,
    /// Make or change one: `lavra schedule set nightly http '0 3 * * *' --payload '{"url": "…"}'`.
    Set {
        /// What people call it.
        name: String,
        /// The type of its tasks.
        #[arg(value_name = "TYPE")]
        kind: String,
        /// When, as a cron line in UTC: minute, hour, day, month, day of the week.
        cron: String,
        /// What its tasks are given, as JSON; `-` reads it from stdin.
        #[arg(long, value_name = "JSON", default_value = "{}")]
        payload: String,
    },
    /// Remove a schedule; tasks that it has made stay.
    Remove {
        /// The name of the schedule.
        name: String,
    },
}
