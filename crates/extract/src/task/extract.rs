//! The task type `extract`: the task is the run.
//!
//! Its rows are the fine state inside it. A run that ends with tasks that are partial or failed has
//! failed with the counts, and `:retry` goes on from the table; one that is told to stop drains.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lavra_db::{Database, migrate};
use lavra_tasks::model::{ProcessId, Status, TaskId};
use lavra_tasks::store::ListFilter;
use lavra_tasks::{Context, Failure, Handler, Outcome, Pulse, Tasks, outbound};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::{failure, scope_of, source_of, until_stopped};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::event::{Event, Summary};
use crate::host::{Condition, Host};
use crate::month::Month;
use crate::plan::{Wanted, plan};
use crate::source::Source;
use crate::store::Scope;
use crate::{Extractor, Settings, has_tables, migrations, store_of, views};

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

    /// The part of the table that is meant.
    fn scope(&self, source: &Source, now: Timestamp) -> Result<Scope> {
        if self.retry {
            return scope_of(source, Some(self.from), Some(self.to), &self.endpoints);
        }
        Ok(plan(source, &self.wanted(), now)?.scope)
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

/// In whose name an extractor works.
struct Whose {
    process: ProcessId,
    pulse: Pulse,
    run: String,
    asked_at: Timestamp,
}

/// How often a process that has nothing to extract looks whether others do.
const LOOK_FOR_WORK: Duration = Duration::from_secs(2);

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
        migrate(&self.database, &migrations(&source.name)).await?;
        if let Err(error) = views::ensure(&self.database, &source).await {
            let source = source.name.as_str();
            tracing::warn!(%error, source, "the views of the records are not as they should be");
        }
        // As it is after a `:retry`, and not after a failure.
        let is_resumed = context.attempt() > 1 && context.retry_count() == 0 && !order.refresh;
        let retried =
            order.retry.then(|| order.scope(&source, self.database.clock().now())).transpose()?;
        let (run, stop) = (context.id().to_string(), CancellationToken::new());
        let whose = Whose {
            process: context.process(),
            pulse: context.pulse(),
            run,
            asked_at: context.created_at(),
        };
        let (extractor, heard) = self.extractor(source, whose, stop.clone())?;
        let host = Arc::clone(&extractor.host);
        let listening = tokio::spawn(listen(heard, context.clone(), host, self.told.clone()));
        let running = async {
            match retried {
                Some(scope) => extractor.retry(scope).await,
                None if is_resumed => extractor.resume(&order.wanted()).await,
                None => extractor.run(&order.wanted(), order.refresh).await,
            }
        };
        let summary = until_stopped(running, stop, context).await;
        let _ended = listening.await;
        summary
    }

    fn extractor(
        &self,
        source: Source,
        Whose { process, pulse, run, asked_at }: Whose,
        stop: CancellationToken,
    ) -> Result<(Extractor, mpsc::UnboundedReceiver<Event>)> {
        let (events, heard) = mpsc::unbounded_channel();
        let cap = source.limits.in_flight;
        let extractor = Extractor {
            store: store_of(&self.database, &source.name),
            client: Arc::new(Client::new(&source, self.private_allowed)?),
            host: Host::shared(&source.base_url, cap, self.settings.breaker),
            source: Arc::new(source),
            process,
            pulse,
            run,
            asked_at,
            settings: self.settings,
            events,
            stop,
        };
        Ok((extractor, heard))
    }

    /// Helps with the runs of other processes, as `process`, until `stop`: a run is one process's
    /// task, and its rows are for all to claim. Only on PostgreSQL are there others.
    pub async fn help(
        self,
        tasks: Tasks,
        process: ProcessId,
        pulse: Pulse,
        stop: CancellationToken,
    ) {
        if matches!(self.database, Database::Duck(_)) {
            return;
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_FOR_WORK) => {}
                () = stop.cancelled() => return,
            }
            let helped = match self.run_of_another(&tasks, process).await {
                Ok(Some(run)) => self.help_with(run, &tasks, (process, pulse.clone()), &stop).await,
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            if let Err(error) = helped {
                tracing::warn!(%error, "no help with an extraction");
            }
        }
    }

    /// A run that another process is at and whose source this one may reach, unless this one is at one
    /// itself.
    async fn run_of_another(
        &self,
        tasks: &Tasks,
        process: ProcessId,
    ) -> Result<Option<(TaskId, Order, Source)>> {
        let filter = ListFilter {
            kind: Some(Self::KIND.into()),
            status: Some(Status::InProgress),
            limit: 20,
            ..ListFilter::default()
        };
        let running = tasks.store().list(filter).await?;
        if running.iter().any(|task| task.process == Some(process)) {
            return Ok(None);
        }
        for task in running.iter().rev() {
            let order: Order = serde_json::from_value(tasks.input(task.id).await?)
                .map_err(|error| Error::Unreadable(error.to_string()))?;
            let source = order.source()?;
            if self.private_allowed || !outbound::is_internal(&source.base_url).await {
                return Ok(Some((task.id, order, source)));
            }
        }
        Ok(None)
    }

    async fn help_with(
        &self,
        (id, order, source): (TaskId, Order, Source),
        tasks: &Tasks,
        process: (ProcessId, Pulse),
        stop: &CancellationToken,
    ) -> Result<()> {
        if !has_tables(&self.database, &source.name).await? {
            return Ok(());
        }
        let now = self.database.clock().now();
        let scope = order.scope(&source, now)?;
        let stop = stop.child_token();
        let (process, pulse) = process;
        let whose = Whose { process, pulse, run: id.to_string(), asked_at: now };
        let (extractor, mut heard) = self.extractor(source, whose, stop.clone())?;
        let watching = {
            let (tasks, stop) = (tasks.clone(), stop.clone());
            tokio::spawn(async move {
                while tasks.task(id).await.is_ok_and(|task| task.status == Status::InProgress) {
                    tokio::time::sleep(LOOK_FOR_WORK).await;
                }
                stop.cancel();
            })
        };
        tokio::spawn(async move { while heard.recv().await.is_some() {} });
        let summary = extractor.assist(scope).await;
        watching.abort();
        let summary = summary?;
        if summary.pages > 0 {
            tracing::info!(run = %id, pages = summary.pages, "helped with an extraction");
        }
        Ok(())
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
        let counts = format!(
            "{} complete, {} partial, {} failed, {} pending",
            summary.complete, summary.partial, summary.failed, summary.pending
        );
        // Stays as it is when the task is retried, unlike the metadata.
        context.step(
            format!("Ended: {counts}"),
            json!({
                "source": order.source, "from": order.from, "to": order.to,
                "endpoints": order.endpoints, "summary": summary,
            }),
        );
        if summary.is_short() {
            return Err(Failure::permanent(counts));
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
        Event::PagesDiffer { task, announced, counted } => {
            Some(format!("{task}: {announced} pages are announced, the total makes {counted}"))
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
        | Event::LeftAlone { .. }
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
            Event::LeftAlone { until } => {
                let until = until.strftime("%H:%M:%S");
                return Some((0, format!("Waiting until {until} UTC, as the server asks")));
            }
            Event::PageStored { .. }
            | Event::Planned { .. }
            | Event::DiscoveryFailed { .. }
            | Event::PagesDiffer { .. }
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
