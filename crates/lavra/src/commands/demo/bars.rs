//! What a person sees while the work is done: bars on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lavra_extract::task::Told;
use lavra_fleet::model::{Mission, Worker, WorkerStatus};
use lavra_fleet::service::Status;
use lavra_tasks::model::Task;

use crate::commands::extract::bars::Bars as Extraction;
use crate::printer::Printer;

const LINE_EVERY: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(100);

pub(super) struct Bars<'a> {
    printer: &'a Printer,
    all: MultiProgress,
    shown: Option<Shown<'a>>,
    missions: u64,
    said: (Option<Instant>, String),
}

/// Where somebody watches.
struct Shown<'a> {
    extraction: Extraction<'a>,
    missions: ProgressBar,
    workers: Vec<ProgressBar>,
}

impl<'a> Bars<'a> {
    pub(super) fn new(printer: &'a Printer) -> Self {
        let said = (None, String::new());
        Self { printer, all: MultiProgress::new(), shown: None, missions: 0, said }
    }

    pub(super) fn begin(&mut self, source: &str, missions: u64) {
        self.missions = missions;
        if !self.printer.is_watched() {
            return;
        }
        let extraction = Extraction::among(self.printer, self.all.clone(), source);
        let bar = self.all.add(ProgressBar::new(missions));
        let template = "{prefix:>12.bold} {bar:24.green} {pos}/{len} missions {elapsed} {wide_msg}";
        let missions = styled(bar, template);
        missions.set_prefix("fleet");
        self.shown = Some(Shown { extraction, missions, workers: Vec::new() });
    }

    /// What happened in the extraction.
    pub(super) fn heard(&mut self, told: &Told) {
        if let Some(shown) = &mut self.shown {
            shown.extraction.show(&told.event, &told.condition);
        }
    }

    /// How everything stands.
    pub(super) fn look(&mut self, extraction: &Task, fleet: &Status, running: &[Mission]) {
        let counts = &fleet.counts;
        let stand = format!("{} scraping, {} storing", counts.extracao, counts.armazenamento);
        match &mut self.shown {
            Some(shown) => {
                shown.missions.set_position(counts.completed.unsigned_abs());
                shown.missions.set_message(stand);
                shown.workers(&self.all, fleet, running);
            }
            None => {
                let all = self.missions;
                let line = format!(
                    "extraction: {} ({}%); missions: {} of {all} completed, {stand}",
                    extraction.state, extraction.progress, counts.completed
                );
                self.line(line);
            }
        }
    }

    /// Says what is new, not too often.
    fn line(&mut self, line: String) {
        let (at, last) = &self.said;
        let is_due = at.is_none_or(|at| at.elapsed() >= LINE_EVERY);
        if is_due && *last != line && !self.printer.is_json() {
            self.printer.note(&line);
            self.said = (Some(Instant::now()), line);
        }
    }

    /// The work is done, and is looked at.
    pub(super) fn audit(&self) -> ProgressBar {
        if !self.printer.is_watched() {
            return ProgressBar::hidden();
        }
        let bar = self.all.add(ProgressBar::new_spinner());
        let bar = styled(bar, "{prefix:>12} {spinner:.green} {wide_msg}");
        bar.set_prefix("audit");
        bar.set_message("every page, record and ad against the world");
        bar.enable_steady_tick(TICK);
        bar
    }

    pub(super) fn close(&self) {
        if let Some(shown) = &self.shown {
            shown.workers.iter().for_each(ProgressBar::finish_and_clear);
            shown.missions.set_message("");
            shown.missions.abandon();
            shown.extraction.close();
        }
    }
}

impl Shown<'_> {
    fn workers(&mut self, all: &MultiProgress, fleet: &Status, running: &[Mission]) {
        while self.workers.len() < fleet.workers.len() {
            let bar = all.add(ProgressBar::new_spinner());
            self.workers.push(styled(bar, "{prefix:>12} {spinner:.green} {wide_msg}"));
        }
        for (bar, worker) in self.workers.iter().zip(&fleet.workers) {
            bar.set_prefix(worker.name.clone());
            bar.set_message(doing(worker, fleet, running));
            bar.tick();
        }
    }
}

/// What a worker is at, and behind which proxy.
fn doing(worker: &Worker, fleet: &Status, running: &[Mission]) -> String {
    let word = match worker.status {
        WorkerStatus::Idle => "idle",
        WorkerStatus::Initializing => "opens a session",
        WorkerStatus::Ready => "ready",
        WorkerStatus::Scraping => "scrapes",
        WorkerStatus::Error => "lost its session",
    };
    let mission = worker.current_mission_id.as_ref();
    let mission = mission.and_then(|id| running.iter().find(|mission| mission.id == *id));
    let what = mission.map(|mission| {
        let (day, kind) = (mission.date_start, mission.media_type);
        format!(" {day} {kind} {}", mission.languages.join(","))
    });
    let is_its =
        |proxy: &&lavra_fleet::model::Proxy| proxy.in_use_by_worker_id.as_ref() == Some(&worker.id);
    let proxy = fleet.proxies.iter().find(is_its);
    let behind = proxy.map(|proxy| format!(" behind {}", proxy.label()));
    format!("{word}{}{}", what.unwrap_or_default(), behind.unwrap_or_default())
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
    bar
}
