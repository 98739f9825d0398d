//! The rows: tasks of the plan, their windows, and pages.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use lavra_tasks::model::{ProcessId, Token};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A task of the control table: `contratos_publicacao_2023-01-01`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExtractionId(pub String);

impl ExtractionId {
    pub fn new(endpoint_name: &str, data_date: Date) -> Self {
        Self(format!("{endpoint_name}_{data_date}"))
    }
}

impl fmt::Display for ExtractionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// No work has started.
    Pending,
    /// Page 1 is being fetched, for the totals.
    Discovering,
    /// A run is at work on its pages.
    Fetching,
    /// Some pages are there, and nobody is at work.
    Partial,
    /// All pages are there, and their records add up to the total.
    Complete,
    Failed,
}

impl Status {
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Discovering,
        Self::Fetching,
        Self::Partial,
        Self::Complete,
        Self::Failed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Discovering => "DISCOVERING",
            Self::Fetching => "FETCHING",
            Self::Partial => "PARTIAL",
            Self::Complete => "COMPLETE",
            Self::Failed => "FAILED",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A row of the control table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Extraction {
    pub task_id: ExtractionId,
    pub endpoint_name: String,
    pub data_date: Date,
    pub status: Status,
    pub total_pages: Option<i64>,
    pub total_records: Option<i64>,
    pub last_error: Option<String>,
    pub updated_at: Timestamp,
    pub token: Token,
    pub process: Option<ProcessId>,
    /// Failed discoveries in a row, and since when.
    pub attempts: i32,
    pub failing_since: Option<Timestamp>,
    pub next_attempt_at: Option<Timestamp>,
    /// Discoveries of this generation.
    pub discoveries: i32,
    /// Grows when all of it is to be fetched again.
    pub generation: i32,
    pub discovered_at: Option<Timestamp>,
    /// Whether the month was over when it was fetched.
    pub is_final: bool,
    /// `exact`, `short by 3`, `drifted by 2`.
    pub verdict: Option<String>,
}

/// A part of a task's days that is paged by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    pub number: i32,
    pub first_day: Date,
    pub last_day: Date,
    /// What is added to its page numbers, so that those of a task never collide.
    pub base: i64,
    pub totals: Option<Totals>,
}

/// What a source announces of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub records: i64,
    pub pages: i64,
}

impl Totals {
    /// By the specification's rule: from the total and the size of a page.
    pub fn of(records: i64, page_size: i64) -> Self {
        let size = page_size.max(1);
        let records = records.max(0);
        Self { records, pages: records / size + i64::from(records % size > 0) }
    }

    /// How many records the page must have: all are full but the last.
    pub fn expected(self, page: i64, page_size: i64) -> i64 {
        (self.records - (page - 1) * page_size).clamp(0, page_size)
    }
}

/// A page that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Within the task: the window's base included.
    pub page: i64,
    pub records: i64,
    pub total_records: i64,
    pub generation: i32,
}

/// A page that is stored, with what it can be checked by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub stored: Stored,
    pub bytes: i64,
    pub response: Uuid,
    pub body_hash: String,
    pub content_hash: String,
    /// When it was last seen as it is.
    pub fetched_at: Timestamp,
}

/// The last failure of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageFailure {
    pub page: i64,
    pub at: Timestamp,
    /// The status of the answer, or 0 where there was none.
    pub code: i32,
    pub error: String,
}

/// A month of an endpoint, as far as a grid shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    pub endpoint_name: String,
    pub data_date: Date,
    pub status: Status,
    pub total_pages: Option<i64>,
    pub total_records: Option<i64>,
    /// What is stored; of what is complete, what was announced.
    pub pages: i64,
    pub records: i64,
}

impl Cell {
    /// How much of it is there: 100 only when it is complete.
    pub fn percent(&self) -> u8 {
        match (self.status, self.total_pages) {
            (Status::Complete, _) => 100,
            (_, Some(all)) if all > 0 => (self.pages.clamp(0, all) * 100 / all).min(99) as u8,
            (_, Some(_) | None) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_are_full_but_the_last() {
        let totals = Totals::of(1001, 500);
        assert_eq!(totals.pages, 3);
        let expected: Vec<i64> = (1..=4).map(|page| totals.expected(page, 500)).collect();
        assert_eq!(expected, [500, 500, 1, 0]);
        assert_eq!(Totals::of(0, 500).pages, 0);
        assert_eq!(Totals::of(500, 500).pages, 1);
    }

    #[test]
    fn a_status_is_read_as_it_is_written() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse("DONE"), None);
    }
}
