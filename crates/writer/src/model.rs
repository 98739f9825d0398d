//! Jobs, as they are asked for, stored and told.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use crate::failure::Failure;

const LONGEST_ID: usize = 100;
/// Of names without a column, so many are told, and so many characters of each.
const UNKNOWN: usize = 100;

/// The name of a job: the caller's, or one of ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobId(String);

impl JobId {
    /// What can stand in a path and in a log.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:~".contains(&byte);
        let is_one = (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(is_plain);
        is_one.then(|| Self(text.to_owned()))
    }

    pub(crate) fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Processing,
    Completed,
    Partial,
    Failed,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "completed" => Self::Completed,
            "partial" => Self::Partial,
            "failed" => Self::Failed,
            _ => Self::Processing,
        }
    }
}

/// How far a job has come. Every element up to `processed` is settled: stored, or failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Elements that were seen so far; all of them at the end.
    pub total: u64,
    pub processed: u64,
    pub success_count: u64,
    pub failed_count: u64,
    /// Elements that another one of the same key followed closely: the last one counts.
    pub duplicate_count: u64,
    /// Keys without a column, with how often they came.
    pub unknown_keys: BTreeMap<String, u64>,
}

/// Counts a name without a column, if it is among the first of them.
pub(crate) fn count_unknown(unknown: &mut BTreeMap<String, u64>, name: &str, times: u64) {
    let end = name.char_indices().nth(UNKNOWN).map_or(name.len(), |(end, _)| end);
    let name = &name[..end];
    if let Some(before) = unknown.get_mut(name) {
        *before += times;
    } else if unknown.len() < UNKNOWN {
        unknown.insert(name.to_owned(), times);
    }
}

impl Progress {
    pub(crate) fn count_unknown(&mut self, batch: &BTreeMap<String, u64>) {
        for (name, times) in batch {
            count_unknown(&mut self.unknown_keys, name, *times);
        }
    }

    /// Takes what is known of a batch, also of one that failed after a part of it was stored: an
    /// insert that is begun again must not begin before that.
    pub(crate) fn catch_up(&mut self, known: Self) {
        if known.processed > self.processed {
            *self = known;
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub id: JobId,
    pub status: Status,
    pub progress: Progress,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
}

/// An element that could not be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedItem {
    pub index: u64,
    /// JSON, as it came; `null` where it was too long.
    pub data: String,
    pub error: String,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(Status),
    Failed(Failure),
}

impl Outcome {
    /// Of a job that came to the end of its source.
    pub(crate) fn of(progress: &Progress) -> Self {
        match (progress.success_count, progress.failed_count) {
            (_, 0) => Self::Done(Status::Completed),
            (0, failed) => {
                // Not in the words of the database, which repeat values.
                let text = format!(
                    "none of the {failed} elements could be stored: failed_items says why of each"
                );
                Self::Failed(Failure::schema(text))
            }
            _ => Self::Done(Status::Partial),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_names_without_a_column_some_are_kept_whatever_comes() {
        let mut progress = Progress::default();
        for batch in 0..10 {
            let names = (0..100).map(|n| (format!("{batch}-{n}"), 1));
            progress.count_unknown(&names.chain([("0-0".into(), 1)]).collect());
        }
        assert_eq!(progress.unknown_keys.len(), UNKNOWN);
        assert_eq!(progress.unknown_keys["0-0"], 10);
    }

    #[test]
    fn long_names_are_cut_and_counted() {
        let mut unknown = BTreeMap::new();
        for _ in 0..3 {
            count_unknown(&mut unknown, &"é".repeat(200), 1);
        }
        assert_eq!(unknown, BTreeMap::from([("é".repeat(UNKNOWN), 3)]));
    }
}
