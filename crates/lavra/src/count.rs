//! The task type `count`, which counts slowly: for trying tasks out, and for tests.

use std::time::Duration;

use lavra_tasks::{Context, Failure, Handler, Outcome};
use serde::Deserialize;
use serde_json::json;

/// Counts to `to`, a step at a time; fails on its first attempts if asked to.
#[derive(Debug)]
pub(crate) struct Count;

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CountInput {
    to: u32,
    step_ms: u64,
    fail_attempts: i32,
}

impl Default for CountInput {
    fn default() -> Self {
        Self { to: 10, step_ms: 100, fail_attempts: 0 }
    }
}

impl Handler for Count {
    type Input = CountInput;

    const KIND: &'static str = "count";

    async fn run(&self, input: CountInput, context: Context) -> Outcome {
        context.step("Counting", json!({ "to": input.to }));
        for number in 1..=input.to {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(input.step_ms)) => {}
                _ = context.stopped() => return Err(Failure::Stopped),
            }
            context.progress(
                (number * 100 / input.to.max(1)) as i16,
                format!("Counted {number}/{}", input.to),
            );
            if context.attempt() <= input.fail_attempts && number * 2 > input.to {
                return Err(Failure::Retry {
                    error: "the demonstration asked for a failure".into(),
                    after: None,
                });
            }
        }
        Ok(Some(json!({ "counted": input.to, "attempt": context.attempt() })))
    }
}
