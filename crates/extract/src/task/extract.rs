//! The task type `extract`: the task is the run.
//!
//! Its rows are the fine state inside it. A run that ends with tasks that are partial or failed has
//! failed with the counts, and `:retry` goes on from the table; one that is told to stop drains.

use std::sync::Arc;

use lavra_db::{Database, migrate};
use lavra_tasks::model::TaskId;
use lavra_tasks::{Context, Failure, Handler, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::{failure, scope_of, source_of, until_stopped};
use crate::client::Client;
use crate::error::Result;
use crate::event::{Event, Summary};
use crate::host::{Condition, Host};
use crate::month::Month;
use crate::plan::Wanted;
use crate::source::Source;
use crate::{Extractor, Settings, migrations, store_of, views};

/// What an `extract` task is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// A source that is built in, or the name of the one that is defined here.
    pub source: String,
    /// The text of a source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    pub from: Month,
    pub to: Month,
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// Fetches also what is complete.
    #[serde(default)]
    pub refresh: bool,
    /// Plans nothing: takes up what is in the table and not complete, also what has failed.
    #[serde(default)]
    pub retry: bool,
    /// Another place where the same API is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
}

impl Order {
    /// The source that is meant.
    pub fn source(&self) -> Result<Source> {
        source_of(&self.source, self.definition.as_deref(), self.base_url.as_deref())
    }

    pub fn wanted(&self) -> Wanted {
        Wanted { from: self.from, to: self.to, endpoints: self.endpoints.clone() }
    }
}

/// What happened in a run, for those who watch it in this process.
#[derive(Clone, Debug)]
pub struct Told {
    pub task: TaskId,
    pub event: Event,
    pub condition: Condition,
}

#[derive(Clone, Debug)]
pub struct Extract {
    database: Database,
    settings: Settings,
    private_allowed: bool,
    told: broadcast::Sender<Told>,
}

impl Extract {
    pub fn new(database: Database, settings: Settings, private_allowed: bool) -> Self {
        let (told, _) = broadcast::channel(4096);
        Self { database, settings, private_allowed, told }
    }

    /// All that happens in the runs of this process from now on.
    pub fn watch(&self) -> broadcast::Receiver<Told> {
        self.told.subscribe()
    }

    async fn extract(&self, order: &Order, context: &Context) -> Result<Summary> {
        let source = order.source()?;
        let scope = order
            .retry
            .then(|| scope_of(&source, Some(order.from), Some(order.to), &order.endpoints));
        let scope = scope.transpose()?;
        migrate(&self.database, &migrations(&source.name)).await?;
        if let Err(error) = views::ensure(&self.database, &source).await {
            tracing::warn!(%error, source = source.name, "the views of the records are not as they should be");
        }
        let host = Host::new(source.limits.in_flight, self.settings.breaker);
        let (events, heard) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let extractor = Extractor {
            store: store_of(&self.database, &source.name),
            client: Arc::new(Client::new(&source, self.private_allowed)?),
            source: Arc::new(source),
            process: context.process(),
            run: context.id().to_string(),
            settings: self.settings,
            events,
            stop: stop.clone(),
            host: Arc::clone(&host),
        };
        let listening = tokio::spawn(listen(heard, context.clone(), host, self.told.clone()));
        let running = async {
            match scope {
                Some(scope) => extractor.retry(scope).await,
                None => extractor.run(&order.wanted(), order.refresh).await,
            }
        };
        let summary = until_stopped(running, stop, context).await;
        let _ended = listening.await;
        summary
    }
}

impl Handler for Extract {
    type Input = Order;

    const KIND: &'static str = "extract";

    async fn run(&self, order: Order, context: Context) -> Outcome {
        let summary = match self.extract(&order, &context).await {
            Ok(summary) => summary,
            Err(error) => return Err(failure(error)),
        };
        context.metadata(json!({ "summary": summary }));
        if summary.is_interrupted && context.is_stopping() {
            return Err(Failure::Stopped);
        }
        if summary.is_short() {
            return Err(Failure::permanent(format!(
                "{} complete, {} partial, {} failed, {} pending",
                summary.complete, summary.partial, summary.failed, summary.pending
            )));
        }
        let source = &order.source;
        Ok(Some(json!({
            "source": source,
            "plan": format!("psa.{source}_extraction_tasks"),
            "pages": format!("psa.{source}_pages"),
            "responses": format!("psa.{source}_raw_responses"),
            "summary": summary,
        })))
    }
}

/// Turns what happens into the task's progress and steps.
async fn listen(
    mut heard: mpsc::UnboundedReceiver<Event>,
    context: Context,
    host: Arc<Host>,
    told: broadcast::Sender<Told>,
) {
    let mut progress = Progress::default();
    while let Some(event) = heard.recv().await {
        if let Some((percent, state)) = progress.after(&event) {
            context.progress(percent, state);
        }
        if let Some(step) = step(&event) {
            context.step(step, json!({ "extraction": event }));
        }
        let condition = host.condition();
        let _nobody_watches = told.send(Told { task: context.id(), event, condition });
    }
}

/// What is worth an event of the task.
fn step(event: &Event) -> Option<String> {
    match event {
        Event::Planned { tasks, new } => Some(format!("Planned {tasks} tasks, {new} of them new")),
        Event::Drifted { task, from, to } => {
            Some(format!("{task}: the total went from {from} to {to}"))
        }
        Event::OutageBegan { endpoint, error } => Some(format!("{endpoint} is away: {error}")),
        Event::OutageEnded { endpoint } => Some(format!("{endpoint} is back")),
        Event::TaskEnded { task, status, error: Some(error), .. } => {
            Some(format!("{task} is {status}: {error}"))
        }
        Event::Discovering { .. }
        | Event::Discovered { .. }
        | Event::DiscoveryFailed { .. }
        | Event::Fetching { .. }
        | Event::TaskBegun { .. }
        | Event::PageStored { .. }
        | Event::PageFailed { .. }
        | Event::TaskEnded { .. }
        | Event::TaskLost { .. }
        | Event::Waiting { .. }
        | Event::Ended { .. } => None,
    }
}

/// How far a run is: a tenth is discovery, the rest are pages.
#[derive(Debug, Default)]
struct Progress {
    to_discover: usize,
    discovered: usize,
    missing: i64,
    stored: i64,
}

impl Progress {
    fn after(&mut self, event: &Event) -> Option<(i16, String)> {
        match event {
            Event::Discovering { waiting } => {
                self.to_discover = *waiting;
                self.discovered = 0;
            }
            Event::Discovered { .. } => self.discovered += 1,
            Event::Fetching { pages, .. } => {
                self.missing = *pages;
                self.stored = 0;
            }
            Event::PageStored { .. } if self.missing > 0 => self.stored += 1,
            Event::Waiting { tasks, why } => {
                return Some((0, format!("Waiting for {why}: {tasks} tasks")));
            }
            Event::PageStored { .. }
            | Event::Planned { .. }
            | Event::DiscoveryFailed { .. }
            | Event::TaskBegun { .. }
            | Event::PageFailed { .. }
            | Event::Drifted { .. }
            | Event::TaskEnded { .. }
            | Event::TaskLost { .. }
            | Event::OutageBegan { .. }
            | Event::OutageEnded { .. }
            | Event::Ended { .. } => return None,
        }
        let share = |done: i64, all: i64, of: i64| (done.min(all) * of / all.max(1)) as i16;
        if self.missing > 0 {
            let percent = 10 + share(self.stored, self.missing, 89);
            return Some((percent, format!("Fetching pages {}/{}", self.stored, self.missing)));
        }
        let percent = share(self.discovered as i64, self.to_discover as i64, 10);
        Some((percent, format!("Discovering {}/{}", self.discovered, self.to_discover)))
    }
}
