//! What a person sees of a run: the whole, the phase, and each task at work; plain lines where
//! nobody watches.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use indicatif::{
    HumanBytes, HumanDuration, MultiProgress, ProgressBar, ProgressState, ProgressStyle,
};
use lavra_extract::event::Event;
use lavra_extract::host::Condition;
use lavra_extract::model::ExtractionId;
use serde_json::Value;

use crate::printer::Printer;

const TICK: Duration = Duration::from_millis(500);

pub(crate) struct Bars<'a> {
    printer: &'a Printer,
    all: MultiProgress,
    overall: ProgressBar,
    phase: ProgressBar,
    tasks: HashMap<ExtractionId, ProgressBar>,
    retries: u64,
    /// Whether anything came from the source in this run.
    has_come: bool,
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key(
        "rate",
        |state: &ProgressState, out: &mut dyn Write| {
            let _full = write!(out, "{:.1}/s", state.per_sec());
        },
    );
    let style = style.with_key("left", |state: &ProgressState, out: &mut dyn Write| {
        // Nothing moves: nobody knows.
        let _full = if state.per_sec() < 0.01 {
            write!(out, "?")
        } else {
            write!(out, "{:#}", HumanDuration(state.eta()))
        };
    });
    bar.set_style(style.progress_chars("━╸─"));
    bar
}

impl<'a> Bars<'a> {
    pub(crate) fn new(printer: &'a Printer, source: &str) -> Self {
        Self::among(printer, MultiProgress::new(), source)
    }

    /// The same among other bars.
    pub(crate) fn among(printer: &'a Printer, all: MultiProgress, source: &str) -> Self {
        let new = |template: &str| {
            let bar = if printer.is_watched() {
                all.add(ProgressBar::new(0))
            } else {
                ProgressBar::hidden()
            };
            styled(bar, template)
        };
        let overall =
            new("{prefix:>12.bold} {bar:24.green} {pos}/{len} tasks {elapsed} {wide_msg}");
        overall.set_prefix(source.to_owned());
        if printer.is_watched() {
            // The clock goes on while nothing comes.
            overall.enable_steady_tick(TICK);
        }
        let phase = new("{prefix:>12} {bar:24.cyan} {pos}/{len} {rate} eta {left} {wide_msg}");
        Self { printer, all, overall, phase, tasks: HashMap::new(), retries: 0, has_come: false }
    }

    pub(crate) fn show(&mut self, event: &Event, condition: &Condition) {
        match event {
            Event::Planned { tasks, .. } => {
                self.overall.set_length(*tasks as u64);
                self.line(&format!("planned: {}", some(*tasks, "task")));
            }
            Event::Discovering { waiting } => {
                self.phase("discovering", *waiting as u64);
                self.line(&format!("discovering {}", some(*waiting, "task")));
            }
            Event::Discovered { .. } => {
                self.has_come = true;
                if self.phase.prefix() == "discovering" {
                    self.phase.inc(1);
                }
            }
            Event::Fetching { tasks, pages } => {
                self.phase("fetching", *pages as u64);
                self.line(&format!(
                    "fetching {} of {}",
                    some(*pages as usize, "page"),
                    some(*tasks, "task")
                ));
            }
            Event::TaskBegun { task, missing } => self.begin(task, *missing as u64),
            Event::PageStored { task, .. } => {
                self.has_come = true;
                if self.phase.prefix() == "fetching" {
                    self.phase.inc(1);
                }
                if let Some(bar) = self.tasks.get(task) {
                    bar.inc(1);
                }
            }
            Event::PageFailed { .. } => self.retries += 1,
            Event::TaskEnded { task, status, error, .. } => {
                if let Some(bar) = self.tasks.remove(task) {
                    bar.finish_and_clear();
                }
                if status.as_str() == "COMPLETE" {
                    self.overall.inc(1);
                }
                let reason = error.as_ref().map(|e| format!(": {e}")).unwrap_or_default();
                if error.is_some() {
                    self.say(&format!("{task} is {status}{reason}"));
                } else {
                    self.line(&format!("{task} is {status}"));
                }
            }
            Event::DiscoveryFailed { task, error } => self.line(&format!("{task}: {error}")),
            Event::PagesDiffer { task, announced, counted } => self.say(&format!(
                "{task}: {announced} pages are announced, the total makes {counted}; the total counts"
            )),
            Event::Drifted { task, from, to } => {
                self.say(&format!(
                    "{task}: the total went from {from} to {to}; fetching what moved"
                ));
            }
            Event::OutageBegan { endpoint, error } => {
                let hint =
                    if self.has_come { "" } else { "; nothing came yet: is the address right?" };
                self.say(&format!(
                    "{endpoint} is away ({error}); waiting, and asking now and then{hint}"
                ));
            }
            Event::OutageEnded { endpoint } => self.say(&format!("{endpoint} is back")),
            Event::TaskLost { task } => {
                self.say(&format!("{task} was taken over by another process"));
            }
            Event::LeftAlone { until } => {
                let until = until.strftime("%H:%M:%S");
                self.say(&format!("the server asks to be left alone until {until} UTC"));
            }
            Event::Ended { .. } => {}
            Event::Waiting { tasks, why } => {
                self.phase.set_message(format!("waiting for {why}: {tasks}"));
                // Others may have completed some.
                let all = self.overall.length().unwrap_or(0);
                self.overall.set_position(all.saturating_sub(*tasks as u64));
            }
        }
        let failures = (self.retries > 0).then(|| format!("{} failures", self.retries));
        let away =
            (!condition.open.is_empty()).then(|| format!("away: {}", condition.open.join(" ")));
        let state = [Some(format!("{} at once", condition.limit)), failures, away];
        self.overall.set_message(state.into_iter().flatten().collect::<Vec<_>>().join(", "));
    }

    fn phase(&self, name: &'static str, length: u64) {
        self.phase.set_prefix(name);
        self.phase.set_message("");
        self.phase.set_length(length);
        self.phase.set_position(0);
        self.phase.reset_eta();
    }

    fn begin(&mut self, task: &ExtractionId, missing: u64) {
        let printer = self.printer;
        let (all, phase) = (&self.all, self.phase.clone());
        let bar = self.tasks.entry(task.clone()).or_insert_with(|| {
            let bar = if printer.is_watched() {
                all.insert_after(&phase, ProgressBar::new(0))
            } else {
                ProgressBar::hidden()
            };
            let bar = styled(bar, "             {bar:24.dim} {pos}/{len} {wide_msg}");
            bar.set_message(month_first(task));
            bar
        });
        bar.set_length(missing);
        bar.set_position(0);
    }

    /// What is worth a line above the bars.
    pub(crate) fn say(&self, text: &str) {
        if self.printer.is_json() {
            return;
        }
        if self.printer.is_watched() {
            let _closed = self.all.println(text);
        } else {
            self.printer.note(text);
        }
    }

    /// What only those need who see no bars.
    fn line(&self, text: &str) {
        if !self.printer.is_watched() && !self.printer.is_json() {
            self.printer.note(text);
        }
    }

    pub(crate) fn close(&self) {
        for bar in self.tasks.values() {
            bar.finish_and_clear();
        }
        self.phase.finish_and_clear();
        self.overall.abandon();
    }
}

/// A task with its month before the endpoint, of which a narrow terminal shows only the beginning.
fn month_first(task: &ExtractionId) -> String {
    let id = task.to_string();
    let apart = id.rsplit_once('_').and_then(|(name, date)| Some((name, date.rsplit_once('-')?.0)));
    apart.map_or_else(|| id.clone(), |(name, month)| format!("{month} {name}"))
}

/// So many things, of which one is called so.
fn some(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// What came of it, for a person.
pub(crate) fn summary(summary: &Value, printer: &Printer) {
    let number = |name: &str| summary.get(name).and_then(Value::as_u64).unwrap_or(0);
    printer.data(&format!(
        "tasks     {} complete, {} partial, {} failed, {} pending",
        number("complete"),
        number("partial"),
        number("failed"),
        number("pending")
    ));
    printer.data(&format!(
        "stored    {} pages, {} records, {}",
        number("pages"),
        number("records"),
        HumanBytes(number("bytes"))
    ));
    let failures = summary.get("failures").and_then(Value::as_object).cloned().unwrap_or_default();
    let failures: Vec<String> =
        failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let failures = if failures.is_empty() { "no failure".into() } else { failures.join(", ") };
    printer.data(&format!(
        "requests  {}, {} of them for pages that were there ({} drifts); {failures}",
        number("requests"),
        number("again"),
        number("drifts")
    ));
}
