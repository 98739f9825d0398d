//! No task failed for good, and all that was to be announced was.

use std::time::Duration;

use lavra_tasks::Tasks;
use tokio::time::{Instant, sleep};

use super::{Audited, Code, Finding};

/// More than a demonstration makes tasks.
const MOST: usize = 100;
/// How long the last announcement may be under way.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn audit(tasks: &Tasks, audited: &mut Audited) -> anyhow::Result<()> {
    for letter in tasks.store().dead_letters(None, MOST).await? {
        let of = match letter.task_id {
            Some(id) => format!("task {id}"),
            None => format!("dead letter {}", letter.id),
        };
        audited.findings.push(Finding::new(Code::DeadLetter, of, letter.reason));
    }
    let start = Instant::now();
    while tasks.store().outbox_depth().await? > 0 {
        if start.elapsed() > PATIENCE {
            let text = "the broker was not told of every task";
            audited.findings.push(Finding::new(Code::Unfinished, "outbox", text));
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
