//! What is behind a fleet, and how it comes to an answer: whom a request is for, what stands in its way,
//! and only then what it does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::ads::Library;
use super::ask::{Fate, FleetAnswer, FleetBody, FleetRequest};
use super::config::{FleetConfig, part};
use super::faults::{FleetFaults, Outages, RequestFault, RequestFaults, draw};
use super::job::{Ids, Job};
use super::ledger::Ledger;
use super::route::{Place, Route, route};
use super::worker::Worker;
use super::writer::Writer;
use crate::dice::Dice;
use crate::faults::waf_page;

#[derive(Debug)]
pub(super) struct State {
    pub(super) seed: u64,
    pub(super) config: FleetConfig,
    pub(super) faults: Arc<FleetFaults>,
    pub(super) library: Library,
    pub(super) ids: Ids,
    pub(super) workers: Vec<Worker>,
    pub(super) writers: Vec<Writer>,
    /// All there ever were; their ids are made of their numbers.
    pub(super) jobs: Vec<Job>,
    /// The workers that were last seen behind each proxy.
    pub(super) proxies: BTreeMap<Arc<str>, Vec<usize>>,
    pub(super) ledger: Ledger,
    /// The latest time that anyone asked at.
    pub(super) latest: Duration,
}

/// Marks the streams of chance.
pub(super) const WORKER: u64 = 0xF1E1;
pub(super) const WRITER: u64 = 0xF1E2;

/// A request that found its server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) request: &'a FleetRequest<'a>,
    /// The server's number.
    pub(super) server: usize,
    pub(super) now: Duration,
}

/// What happens to a request on its way.
enum Way {
    /// It gets this answer and has no effect.
    Blocked(FleetAnswer),
    /// It takes effect, and its answer fares so.
    Open { fate: Fate, late: Duration },
}

impl State {
    pub(super) fn answer(&mut self, now: Duration, request: &FleetRequest<'_>) -> FleetAnswer {
        self.latest = self.latest.max(now);
        let Some((place, route)) = route(request.method, request.url) else {
            self.ledger.asked(&Route::Nowhere, Fate::Delivered);
            return FleetAnswer::error(404, "there are /worker/{n} and /writer/{n}");
        };
        let (kind, server) = match place {
            Place::Worker(number) => (WORKER, number),
            Place::Writer(number) => (WRITER, number),
        };
        let count = match place {
            Place::Worker(number) => {
                self.workers.get_mut(number).map(|worker| &mut worker.requests)
            }
            Place::Writer(number) => {
                self.writers.get_mut(number).map(|writer| &mut writer.requests)
            }
        };
        let Some(count) = count else {
            self.ledger.asked(&Route::Nowhere, Fate::Delivered);
            return FleetAnswer::error(404, "there are not so many servers");
        };
        *count += 1;
        let mut dice = Dice::of(&[self.seed, kind, server as u64, *count]);
        let latency = self.config.latency.draw(&mut dice);
        let arrival = Arrival { request, server, now };
        let answer = match self.way(place, &route, now, &mut dice) {
            Way::Blocked(answer) => {
                if route == Route::CloseSession {
                    self.close_failed(server);
                }
                answer
            }
            Way::Open { fate, late } => {
                let answer = match place {
                    Place::Worker(_) => self.ask_worker(arrival, &route, &mut dice),
                    Place::Writer(_) => self.ask_writer(arrival, &route),
                };
                match fate {
                    Fate::Delivered => FleetAnswer { delay: late, ..answer },
                    fate => FleetAnswer::lost(fate),
                }
            }
        };
        self.ledger.asked(&route, answer.fate);
        let delay = match answer.fate {
            Fate::Delivered | Fate::Reset => answer.delay.saturating_add(latency),
            Fate::Refused => Duration::ZERO,
            Fate::Timeout => Duration::from_millis(self.config.hang_ms),
        };
        FleetAnswer { delay, ..answer }
    }

    /// What stands in the way of a request. Whoever fetches results meets outages only.
    fn way(&self, place: Place, route: &Route<'_>, now: Duration, dice: &mut Dice) -> Way {
        let (outages, requests, kind, server): (&Outages, &RequestFaults, u64, usize) = match place
        {
            Place::Worker(number) => {
                (&self.faults.worker_outages, &self.faults.worker_requests, WORKER, number)
            }
            Place::Writer(number) => {
                (&self.faults.writer_outages, &self.faults.writer_requests, WRITER, number)
            }
        };
        if outages.is_away(now, server, [self.seed, kind]) {
            return Way::Blocked(FleetAnswer::lost(Fate::Refused));
        }
        let through = |fate| Way::Open { fate, late: Duration::ZERO };
        if matches!(route, Route::Results(_)) {
            return through(Fate::Delivered);
        }
        let fault = draw(&requests.kinds(), dice);
        let blocked = |status, message| Way::Blocked(FleetAnswer::error(status, message));
        match fault {
            None => through(Fate::Delivered),
            Some(RequestFault::Html) => {
                Way::Blocked(FleetAnswer::html(200, waf_page(dice.below(1 << 60))))
            }
            Some(RequestFault::Unauthorized) => blocked(401, "invalid API key"),
            Some(RequestFault::TooLarge) => blocked(413, "payload too large"),
            Some(RequestFault::Unprocessable) => blocked(422, "a required field is missing"),
            Some(RequestFault::TooMany) => blocked(429, "rate limit exceeded"),
            Some(RequestFault::RetryAfter) => {
                let after = Duration::from_secs(requests.retry_after_seconds);
                let answer = FleetAnswer::error(429, "rate limit exceeded");
                Way::Blocked(FleetAnswer { retry_after: Some(after), ..answer })
            }
            Some(RequestFault::ServerError) => blocked(500, "internal error"),
            Some(RequestFault::Refused) => Way::Blocked(FleetAnswer::lost(Fate::Refused)),
            Some(RequestFault::Timeout) => Way::Blocked(FleetAnswer::lost(Fate::Timeout)),
            Some(RequestFault::Reset) if dice.chance(0.5) => {
                Way::Blocked(FleetAnswer::lost(Fate::Reset))
            }
            Some(RequestFault::Reset) => through(Fate::Reset),
            Some(RequestFault::Lost) => through(Fate::Timeout),
            Some(RequestFault::Slow) => {
                let most = Duration::from_millis(requests.slow_most_ms);
                Way::Open { fate: Fate::Delivered, late: part(most, dice.share()) }
            }
        }
    }
}

impl Arrival<'_> {
    /// Refuses a key that is not the server's.
    pub(super) fn admit(&self, key: Option<&str>) -> Result<(), FleetAnswer> {
        match key {
            Some(key) if self.request.api_key != Some(key) => {
                Err(FleetAnswer::error(401, "invalid API key"))
            }
            _ => Ok(()),
        }
    }

    /// Reads the body, which must be JSON.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<T, FleetAnswer> {
        let parsed;
        let body = match self.request.body {
            FleetBody::Json(body) => body,
            FleetBody::Nothing => return Err(FleetAnswer::error(400, "a body is needed")),
            FleetBody::Bytes(bytes) => {
                parsed = serde_json::from_slice(bytes)
                    .map_err(|error| FleetAnswer::error(400, &error.to_string()))?;
                &parsed
            }
        };
        read(body).map_err(|message| FleetAnswer::error(422, &message))
    }
}

/// An answer, which may be a refusal on the way to it.
pub(super) type Answered = Result<FleetAnswer, FleetAnswer>;

pub(super) fn either(answered: Answered) -> FleetAnswer {
    answered.unwrap_or_else(|refusal| refusal)
}
