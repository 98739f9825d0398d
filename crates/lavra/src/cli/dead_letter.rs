//! `lavra dead-letter`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetter {
    /// List dead letters, newest first.
    List {
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 50)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
        limit: u16,
        /// Go on where the last page ended, with what it said.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Put the task of a dead letter back into the queue.
    Redrive {
        /// The id of the dead letter.
        id: String,
    },
    /// Remove a dead letter; its task stays FAILED.
    Remove {
        /// The id of the dead letter.
        id: String,
    },
}
