//! How work is written: a type name, a typed input, and `run`.
//!
//! A handler may run more than once for a task (a process can die after its work and before the
//! completion was stored). What it does outside should be safe to repeat: [`Context::id`] is the same
//! in each attempt, [`Context::idempotency_key`] only within one. It should look at
//! [`Context::is_stopping`] between steps, or wait on [`Context::stopped`] beside its own waiting: a
//! cancelled, lost or interrupted attempt is told there.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::runner::Context;

/// How an attempt ends other than well.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Trying again may help; `after` sets the wait (a server's `Retry-After`, say).
    Retry { error: String, after: Option<Duration> },
    /// Trying again cannot help.
    Permanent(String),
    /// The handler stopped because it was told to.
    Stopped,
}

impl Failure {
    pub fn retry(error: impl Into<String>) -> Self {
        Self::Retry { error: error.into(), after: None }
    }

    pub fn permanent(error: impl Into<String>) -> Self {
        Self::Permanent(error.into())
    }
}

/// What a good attempt leaves: a light JSON for `task_results`, or nothing.
pub type Outcome = Result<Option<Value>, Failure>;

pub trait Handler: Send + Sync + 'static {
    /// What the payload must be.
    type Input: DeserializeOwned + Send;

    /// The task type.
    const KIND: &'static str;

    fn run(&self, input: Self::Input, context: Context) -> impl Future<Output = Outcome> + Send;
}

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A handler whose input type is forgotten.
trait Erased: Send + Sync {
    fn start(self: Arc<Self>, payload: Box<RawValue>, context: Context) -> Running;
}

impl<H: Handler> Erased for H {
    fn start(self: Arc<Self>, payload: Box<RawValue>, context: Context) -> Running {
        Box::pin(async move {
            match serde_json::from_str(payload.get()) {
                Ok(input) => self.run(input, context).await,
                Err(error) => Err(Failure::Permanent(format!(
                    "the payload does not fit a task of the type {}: {error}",
                    H::KIND
                ))),
            }
        })
    }
}

/// How the attempts of a type are treated.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub max_retries: i32,
    /// An attempt that runs longer fails (and may be retried).
    pub timeout: Option<Duration>,
    pub may_be_idempotent: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { max_retries: 3, timeout: None, may_be_idempotent: true }
    }
}

#[derive(Clone)]
pub(crate) struct Registered {
    handler: Arc<dyn Erased>,
    pub(crate) policy: Policy,
}

impl Registered {
    pub(crate) fn start(&self, payload: Box<RawValue>, context: Context) -> Running {
        Arc::clone(&self.handler).start(payload, context)
    }
}

/// The handlers that a process has, by type.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<&'static str, Registered>);

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Registry {
    #[must_use]
    pub fn with<H: Handler>(mut self, handler: H, policy: Policy) -> Self {
        self.0.insert(H::KIND, Registered { handler: Arc::new(handler), policy });
        self
    }

    pub(crate) fn get(&self, kind: &str) -> Option<&Registered> {
        self.0.get(kind)
    }

    pub fn kinds(&self) -> Vec<String> {
        self.0.keys().map(|kind| (*kind).to_owned()).collect()
    }

    pub fn policies(&self) -> impl Iterator<Item = (&'static str, Policy)> + '_ {
        self.0.iter().map(|(kind, registered)| (*kind, registered.policy))
    }
}
