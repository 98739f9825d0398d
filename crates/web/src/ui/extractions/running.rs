//! The runs of a source: what is under way, what ended lately, and what the last one was ordered.

use lavra_extract::task::{Extract, ExtractAudit, ExtractExport, Order};
use lavra_tasks::model::{Status, Task};
use lavra_tasks::{Handler, Tasks};

use crate::ui::json::shortened;
use crate::ui::page::Shell;
use crate::ui::tasks::{Badge, badge, step};
use crate::ui::texts::{Extractions as Words, Tasks as TaskWords};

/// Runs that are shown.
const MOST: usize = 8;

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) badge: Badge,
    pub(super) step: String,
    pub(super) error: Option<String>,
    pub(super) progress: i16,
    pub(super) is_open: bool,
    pub(super) iso: String,
    pub(super) ago: String,
}

/// The newest first.
pub(super) async fn runs(
    tasks: &Tasks,
    source: &str,
    t: &'static Words,
    shell: &Shell,
) -> lavra_tasks::Result<Vec<Run>> {
    let kinds = [Extract::KIND, ExtractAudit::KIND, ExtractExport::KIND];
    let kinds = kinds.map(str::to_owned).into();
    let found = tasks.store().about(kinds, "source", source, MOST).await?;
    let words = TaskWords::of(shell.visitor.language);
    Ok(found.into_iter().map(|task| Run::new(task, t, words, shell)).collect())
}

impl Run {
    fn new(task: Task, t: &'static Words, words: &'static TaskWords, shell: &Shell) -> Self {
        let kind = match task.kind.as_str() {
            ExtractAudit::KIND => t.kind_audit,
            ExtractExport::KIND => t.kind_export,
            _ => t.kind_extract,
        };
        Self {
            id: task.id.to_string(),
            kind,
            badge: badge(task.status, words),
            step: shortened(step(&task.state, words)),
            error: task.error.filter(|_| task.status == Status::Failed).map(shortened),
            progress: task.progress,
            is_open: !task.status.is_terminal(),
            iso: shell.f.iso(task.updated_at),
            ago: shell.f.ago(task.updated_at),
        }
    }
}

/// What the last run of a source was ordered: where it went, and how the source is defined.
pub(super) async fn last_order(tasks: &Tasks, source: &str) -> lavra_tasks::Result<Option<Order>> {
    let found = tasks.store().about(vec![Extract::KIND.into()], "source", source, 1).await?;
    let Some(task) = found.first() else { return Ok(None) };
    let input = tasks.store().input(task.id).await?;
    Ok(input.and_then(|input| serde_json::from_value(input).ok()))
}
