//! The world: its records, its switches, and what it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::answer::{Answer, Ending, Request};
use crate::api::{self, Refusal, Route};
use crate::config::WorldConfig;
use crate::day::Day;
use crate::dice::Dice;
use crate::endpoint::{Dates, Endpoint};
use crate::faults::{BadFaults, Faults, Live};
use crate::flight::Ticket;
use crate::json::Order;
use crate::listing::{Filter, Selection};
use crate::records::Records;
use crate::reply::Reply;
use crate::state::State;
use crate::stats::{Outcome, Stats};
use crate::truth::Truth;
use crate::volume::Volume;

/// An outside world. Clones are the same world.
#[derive(Clone, Debug)]
pub struct World {
    state: Arc<State>,
}

impl World {
    pub fn new(config: WorldConfig) -> Self {
        let WorldConfig { seed, scale, now, fixed } = config.bounded();
        let now = now.unwrap_or_else(Timestamp::now);
        let today = Day::from(now.to_zoned(api::brasilia()).date());
        let stretch = fixed.map(|fixed| (fixed.page_bytes / fixed.page_size) as usize);
        let live = Live::new(Faults::default(), None);
        let state = State {
            seed,
            volume: Volume { seed, scale, today, fixed },
            records: Arc::new(Records::new(seed, stretch)),
            overlay: RwLock::default(),
            live: RwLock::new(Arc::new(live)),
            requests: AtomicU64::new(0),
            ledger: Arc::default(),
            began: (now, Instant::now()),
        };
        Self { state: Arc::new(state) }
    }

    /// What is asked, answered as the switches have it.
    pub fn answer(&self, request: &Request<'_>) -> Answer {
        let state = &*self.state;
        let mut ticket = Ticket::new(state.ledger.clone());
        let number = state.requests.fetch_add(1, Ordering::Relaxed);
        let live = state.live.read().clone();
        let mut dice = Dice::of(&[state.seed, number, 0xFA01]);
        let order = Order::Shuffled(Dice::of(&[state.seed, number, 0x0DE2]).roll());
        let arrival = state.arrive(request, order);
        let (reply, delay) = state.respond(&arrival, &live, &mut dice, &mut ticket);
        state.ledger.asked(arrival.endpoint(), outcome(&reply));
        let Reply { status, headers, body, ending } = reply;
        Answer { status, headers, body, delay, ending, ticket }
    }

    /// What the API gives for these parameters now, whatever else fails. `from` and `to` are those of
    /// the request: of `/v1/pca/atualizacao` the last day does not count, `/v1/atas` gives all that is
    /// in force within the window, proposals are those from today, and lists by year take the year of
    /// `from`. Without a fan-out value, those of all.
    pub fn truth(&self, endpoint: Endpoint, fan_out: Option<u16>, from: Date, to: Date) -> Truth {
        let (from, to) = (Day::from(from), Day::from(to));
        let (first, last) = match endpoint.dates() {
            Dates::Closed | Dates::HalfOpen => api::record_days(endpoint, from, to),
            Dates::Until => api::open_days(self.state.volume.today, to),
            Dates::Year => (Day::first_of(from.year()), Day::first_of(from.year())),
        };
        let fans = fan_out.map_or_else(|| endpoint.fans(), |fan| vec![fan]);
        self.truth_of(&Selection { endpoint, fans, first, last, filter: Filter::default() })
    }

    pub(crate) fn truth_of(&self, selection: &Selection) -> Truth {
        Truth::new(self.state.records.clone(), self.state.listing(selection))
    }

    /// The selection that a request for a list names, without its page.
    pub(crate) fn selection(&self, path: &str, query: &str) -> Result<Selection, Refusal> {
        let Route::List(endpoint) = api::route(path) else {
            return Err(Refusal::spring(404, "path must be that of a list, such as /v1/contratos"));
        };
        let query = format!("pagina=1&tamanhoPagina=10&{query}");
        api::parse(endpoint, &query, self.state.volume.today).map(|query| query.selection)
    }

    pub fn faults(&self) -> Faults {
        self.state.live.read().faults.clone()
    }

    /// Sets all switches at once.
    pub fn set_faults(&self, faults: Faults) -> Result<(), BadFaults> {
        faults.check()?;
        let mut live = self.state.live.write();
        let next = Live::new(faults, Some(&live));
        self.state.drift(&next.immediate());
        *live = Arc::new(next);
        Ok(())
    }

    pub fn stats(&self) -> Stats {
        self.state.ledger.stats()
    }

    /// The world's own day: nothing is published after it.
    pub fn today(&self) -> Date {
        let (year, month, day) = self.state.volume.today.civil();
        let date = Date::new(year as i16, month as i8, day as i8);
        date.unwrap_or(Date::constant(1970, 1, 1))
    }

    pub(crate) fn refused(&self, refusal: &Refusal, path: &str) -> Reply {
        Reply::refusal(refusal, path, self.state.now())
    }
}

fn outcome(reply: &Reply) -> Outcome {
    match reply.ending {
        Ending::Whole | Ending::Cut => Outcome::Status(reply.status),
        Ending::Reset => Outcome::Reset,
        Ending::Hang => Outcome::Hang,
    }
}
