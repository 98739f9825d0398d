//! A writer, as the specification of the Writer API describes it. It stores nothing but that it did.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::ask::FleetAnswer;
use super::job::Phase as Scraped;
use super::route::{Place, Route, route};
use super::state::{Answered, Arrival, State, WRITER, either};
use super::write::{Phase, Write, calendar};
use crate::dice::Dice;

#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) key: Option<String>,
    pub(super) requests: u64,
    /// All that were accepted, in their order, with their ids.
    pub(super) writes: Vec<(String, Write)>,
    /// The last one of each id.
    by_id: BTreeMap<String, usize>,
    /// The ids that were made for requests without one.
    by_key: BTreeMap<String, String>,
}

impl Writer {
    pub(super) fn new(key: Option<String>) -> Self {
        Self { key, ..Self::default() }
    }

    /// A job that the writer has not forgotten.
    fn known(&self, id: &str, now: Duration) -> Option<&Write> {
        let (_, write) = self.writes.get(*self.by_id.get(id)?)?;
        (write.phase(now) != Phase::Forgotten).then_some(write)
    }
}

/// What `POST /process` asks for.
struct Wanted {
    job_id: Option<String>,
    url: String,
}

/// The longest id of a job.
const LONGEST_ID: usize = 100;

impl Wanted {
    fn parse(body: &Value) -> Result<Self, String> {
        let job_id = match body.get("job_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) if !id.is_empty() && id.len() <= LONGEST_ID => Some(id.clone()),
            Some(_) => return Err(format!("job_id must be a text of 1 to {LONGEST_ID} bytes")),
        };
        let text = |group: &str, name: &str| {
            let text = body.get(group).and_then(|group| group.get(name)?.as_str());
            let text = text.filter(|text| !text.is_empty());
            text.ok_or_else(|| format!("{group}.{name} is missing"))
        };
        for name in ["table", "schema", "conflict_key"] {
            text("config", name)?;
        }
        if !matches!(text("config", "operation")?, "upsert" | "insert") {
            return Err("config.operation must be upsert or insert".into());
        }
        if text("source", "type")? != "url" {
            return Err("source.type must be url".into());
        }
        text("source", "json_path")?;
        Ok(Self { job_id, url: text("source", "url")?.to_owned() })
    }
}

impl State {
    pub(super) fn ask_writer(&mut self, arrival: Arrival<'_>, route: &Route<'_>) -> FleetAnswer {
        let key = self.writers.get(arrival.server).and_then(|writer| writer.key.as_deref());
        if *route != Route::Health
            && let Err(refusal) = arrival.admit(key)
        {
            return refusal;
        }
        match route {
            Route::Process => either(self.process(arrival)),
            Route::Write(id) => self.write_status(arrival, id),
            Route::Health => FleetAnswer::json(200, r#"{"status":"healthy"}"#),
            Route::WrongMethod => FleetAnswer::error(405, "not by this method"),
            Route::Nowhere
            | Route::OpenSession
            | Route::SessionStatus
            | Route::CloseSession
            | Route::StartScrape
            | Route::Job(_)
            | Route::CancelJob(_)
            | Route::Results(_) => FleetAnswer::error(404, "a writer has no such path"),
        }
    }

    fn process(&mut self, arrival: Arrival<'_>) -> Answered {
        let Wanted { job_id, url } = arrival.read(Wanted::parse)?;
        let Arrival { request, server, now } = arrival;
        let source = self.source(&url, now);
        let Some(writer) = self.writers.get_mut(server) else {
            return Err(FleetAnswer::error(404, "there is no such writer"));
        };
        let number = writer.writes.len() as u64;
        let mut dice = Dice::of(&[self.seed, WRITER, server as u64, number, 0x3217E]);
        let made = uuid(&mut dice);
        let id = match (job_id, request.idempotency_key) {
            (Some(id), _) => id,
            (None, None) => made,
            (None, Some(key)) => writer.by_key.entry(key.to_owned()).or_insert(made).clone(),
        };
        if writer.known(&id, now).is_none() {
            let length = self.config.write.draw(&mut dice);
            let write = Write::start(url, source, now, length, &self.faults.writes, &mut dice);
            writer.by_id.insert(id.clone(), writer.writes.len());
            writer.writes.push((id.clone(), write));
        }
        let status = writer.known(&id, now).map_or("processing", |write| write.phase(now).word());
        let at = calendar(self.config.began, now);
        let body = json!({ "job_id": id, "status": status, "created_at": at });
        Ok(FleetAnswer::json(200, body.to_string()))
    }

    /// The scrape job whose results a URL names, and how many ads are in them.
    fn source(&self, url: &str, now: Duration) -> Option<(usize, Option<u64>)> {
        let (Place::Worker(server), Route::Results(id)) = route("GET", url)? else { return None };
        let number = self.ids.number(id)?;
        let job = self.jobs.get(number).filter(|job| job.worker == server)?;
        Some((number, (job.phase(now) == Scraped::Completed).then_some(job.count)))
    }

    fn write_status(&self, arrival: Arrival<'_>, id: &str) -> FleetAnswer {
        let Arrival { server, now, .. } = arrival;
        let writer = self.writers.get(server);
        let Some(write) = writer.and_then(|writer| writer.known(id, now)) else {
            return FleetAnswer::error(404, "there is no such job");
        };
        let ads = || {
            let job = write.source.and_then(|number| self.jobs.get(number));
            job.map(|job| self.library.truth(&job.filters)).unwrap_or_default()
        };
        let report = write.report(id, now, self.config.began, ads);
        FleetAnswer::json(200, report.to_string())
    }
}

/// An id such as writers make.
fn uuid(dice: &mut Dice) -> String {
    let (high, low) = (dice.roll(), dice.roll());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFF,
        0x8000 | (low >> 48) & 0x3FFF,
        low & 0xFFFF_FFFF_FFFF
    )
}
