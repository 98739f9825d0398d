//! No task failed for good.

use lavra_tasks::Tasks;

use super::{Audited, Code, Finding};

/// More than a demonstration makes tasks.
const MOST: usize = 100;

pub(super) async fn audit(tasks: &Tasks, audited: &mut Audited) -> anyhow::Result<()> {
    for letter in tasks.store().dead_letters(None, MOST).await? {
        let of = match letter.task_id {
            Some(id) => format!("task {id}"),
            None => format!("dead letter {}", letter.id),
        };
        audited.findings.push(Finding::new(Code::DeadLetter, of, letter.reason));
    }
    Ok(())
}
