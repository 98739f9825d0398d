//! The world: its records, its switches, and what it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::answer::{Answer, Ending, Request};
use crate::api::{self, Compra, Query, Refusal, Route, Shape};
use crate::config::WorldConfig;
use crate::day::Day;
use crate::dice::Dice;
use crate::endpoint::{Dates, Empty, Endpoint};
use crate::faults::{self, BadFaults, Fault, Faults, Live};
use crate::flight::Ticket;
use crate::json::{Order, Writer};
use crate::listing::{Filter, Listing, Selection};
use crate::overlay::{Overlay, Runs};
use crate::page;
use crate::records::Records;
use crate::reply::Reply;
use crate::stats::{Ledger, Outcome, PageKey, Stats};
use crate::truth::Truth;
use crate::volume::Volume;

/// The total of [`Faults::huge_total`].
const BILLION: u64 = 1_000_000_000;

/// An outside world. Clones are the same world.
#[derive(Clone, Debug)]
pub struct World {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    seed: u64,
    volume: Volume,
    records: Arc<Records>,
    overlay: RwLock<Arc<Overlay>>,
    live: RwLock<Arc<Live>>,
    requests: AtomicU64,
    ledger: Arc<Ledger>,
    /// The time of the calendar when the world began, and of the clock that tests can stop.
    began: (Timestamp, Instant),
}

/// A request and what it leads to, found before anything can go wrong with it.
struct Arrival<'a> {
    request: &'a Request<'a>,
    route: Route<'a>,
    query: Option<Result<Query, Refusal>>,
    order: Order,
    now: Timestamp,
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
        let query = arrival.query.as_ref().and_then(|query| query.as_ref().ok());
        if let Some(query) = query {
            state.drift(&live.due(&query.selection));
        }
        let mut delay = faults::delay(&live.faults.latency, query.map_or(1, |q| q.page), &mut dice);
        let reply = if let Some(outage) = live.outage() {
            if outage.as_unavailable {
                Reply::gateway(503)
            } else {
                delay = outage.left;
                Reply::failed(Ending::Hang)
            }
        } else if live.limit().is_some_and(|limit| ticket.in_flight > limit) {
            delay = Duration::ZERO;
            match &live.faults.in_flight {
                Some(limit) if limit.as_server_error => {
                    Reply::server_error(&mut dice, arrival.path(), arrival.now)
                }
                _ => Reply::too_many(&mut dice),
            }
        } else {
            let fault =
                faults::draw(&live.faults, &mut dice).filter(|fault| arrival.can_have(*fault));
            if fault == Some(Fault::Hang) {
                delay = Duration::from_millis(live.faults.hang.at_most_ms);
            }
            state.reply(&arrival, fault, &live.faults, &mut dice, &mut ticket)
        };
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

impl Arrival<'_> {
    /// As the API names it in its errors.
    fn path(&self) -> &str {
        api::below_base(self.request.path)
    }

    /// Nothing where nothing is an answer of its own would be a lie that no client can find out.
    fn can_have(&self, fault: Fault) -> bool {
        let silent = |endpoint: &Endpoint| endpoint.empty() == Empty::ZeroLength;
        fault != Fault::ZeroLength || !matches!(&self.route, Route::List(list) if silent(list))
    }

    /// As requests are counted.
    fn endpoint(&self) -> &'static str {
        match self.route {
            Route::List(endpoint) => endpoint.path(),
            Route::Compra { .. } => "/v1/orgaos",
            Route::Nowhere => "elsewhere",
        }
    }
}

impl State {
    fn now(&self) -> Timestamp {
        let (then, since) = self.began;
        then.saturating_add(since.elapsed()).unwrap_or(then)
    }

    fn arrive<'a>(&self, request: &'a Request<'a>, order: Order) -> Arrival<'a> {
        let route = api::route(request.path);
        let query = match route {
            Route::List(endpoint) if request.method == "GET" => {
                Some(api::parse(endpoint, request.query, self.volume.today))
            }
            _ => None,
        };
        Arrival { request, route, query, order, now: self.now() }
    }

    fn listing(&self, selection: &Selection) -> Listing {
        let overlay = self.overlay.read().clone();
        Listing::new(&self.volume, overlay, &self.records, selection)
    }

    fn drift(&self, changes: &[&faults::Change]) {
        if !changes.is_empty() {
            let mut overlay = self.overlay.write();
            let mut next = Overlay::clone(&overlay);
            faults::apply(changes, &self.volume, &mut next);
            *overlay = Arc::new(next);
        }
    }

    fn reply(
        &self,
        arrival: &Arrival<'_>,
        fault: Option<Fault>,
        faults: &Faults,
        dice: &mut Dice,
        ticket: &mut Ticket,
    ) -> Reply {
        let (path, now) = (arrival.path(), arrival.now);
        let Some(fault) = fault else { return self.right(arrival, None, ticket) };
        let reply = match fault {
            Fault::TooMany => Reply::too_many(dice),
            Fault::RetryAfter => Reply::retry_after(&faults.retry_after, dice, now),
            Fault::ServerError => Reply::server_error(dice, path, now),
            Fault::Gateway => Reply::gateway(dice.pick(&[502, 503, 504])),
            Fault::InputString => {
                Reply::error(400, Shape::Spring, "For input string: \"\"", path, now)
            }
            Fault::Dates => Reply::error(422, Shape::Pncp, "Data Inicial inválida", path, now),
            Fault::Hang => Reply::failed(Ending::Hang),
            Fault::Reset => Reply::failed(Ending::Reset),
            Fault::CutChunks => self.right(arrival, None, ticket).cut(false),
            Fault::CutLength => self.right(arrival, None, ticket).cut(true),
            Fault::Html => Reply::firewall(dice),
            Fault::ZeroLength => Reply::zero_length(),
            Fault::WrongJson => self.right(arrival, None, ticket).wrong(),
            Fault::Huge => Reply::huge(faults.huge.bytes),
            Fault::HugeTotal => self.right(arrival, Some(BILLION), ticket),
        };
        ticket.spoil();
        reply
    }

    /// What the API says by itself.
    fn right(&self, arrival: &Arrival<'_>, lie: Option<u64>, ticket: &mut Ticket) -> Reply {
        let (path, now) = (arrival.path(), arrival.now);
        let refuse = |refusal: &Refusal| Reply::refusal(refusal, path, now);
        if arrival.request.method != "GET" {
            let message = format!("Request method '{}' is not supported", arrival.request.method);
            return refuse(&Refusal::spring(405, message));
        }
        match (&arrival.route, &arrival.query) {
            (Route::List(endpoint), Some(Ok(query))) => {
                let listing = self.listing(&query.selection);
                if listing.total() == 0 {
                    return Reply::empty(endpoint.empty(), path, now);
                }
                let (page, size) = (query.page, query.size);
                match page::render(&self.records, &listing, page, size, arrival.order, lie) {
                    Some(body) => {
                        ticket.serves(PageKey { asked: query.asked.clone(), page, size });
                        Reply::json(200, body)
                    }
                    None => refuse(&Refusal::pncp(400, "Página solicitada não existe")),
                }
            }
            (Route::List(_), Some(Err(refusal))) => refuse(refusal),
            (Route::Compra { cnpj, year, sequence }, _) => {
                match Compra::parse(cnpj, year, sequence) {
                    Ok(compra) => self.single(compra, arrival.order).unwrap_or_else(|| {
                        refuse(&Refusal::pncp(404, "Contratação não encontrada"))
                    }),
                    Err(refusal) => refuse(&refusal),
                }
            }
            (Route::Nowhere | Route::List(_), _) => {
                refuse(&Refusal::spring(404, "No message available"))
            }
        }
    }

    fn single(&self, compra: Compra<'_>, order: Order) -> Option<Reply> {
        let slot = self.records.find(compra.cnpj, compra.year, compra.sequence)?;
        let overlay = self.overlay.read().clone();
        let runs = overlay.of_day(slot.endpoint, slot.fan, slot.day).cloned();
        let first = || Runs::first(self.volume.of_day(slot.endpoint, slot.fan, slot.day));
        if !runs.unwrap_or_else(first).contains(slot.number) {
            return None;
        }
        let mut writer = Writer::new(order, 4096);
        self.records.write_single(&mut writer, &slot);
        Some(Reply::json(200, writer.finish()))
    }
}

fn outcome(reply: &Reply) -> Outcome {
    match reply.ending {
        Ending::Whole | Ending::Cut => Outcome::Status(reply.status),
        Ending::Reset => Outcome::Reset,
        Ending::Hang => Outcome::Hang,
    }
}
