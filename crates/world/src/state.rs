//! What is behind a world, and how it comes to an answer: first what the request leads to, then what
//! stands in its way (an outage, the limit of requests in flight, a fault), and only then the records.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::answer::{Ending, Request};
use crate::api::{self, Compra, Query, Refusal, Route, Shape};
use crate::dice::Dice;
use crate::endpoint::{Empty, Endpoint};
use crate::faults::{self, Fault, Faults, Live};
use crate::flight::Ticket;
use crate::json::{Order, Writer};
use crate::listing::{Listing, Selection};
use crate::overlay::{Overlay, Runs};
use crate::page;
use crate::records::Records;
use crate::reply::Reply;
use crate::stats::{Ledger, PageKey};
use crate::volume::Volume;

/// The total of [`Faults::huge_total`].
const BILLION: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) seed: u64,
    pub(crate) volume: Volume,
    pub(crate) records: Arc<Records>,
    pub(crate) overlay: RwLock<Arc<Overlay>>,
    pub(crate) live: RwLock<Arc<Live>>,
    pub(crate) requests: AtomicU64,
    pub(crate) ledger: Arc<Ledger>,
    /// The time of the calendar when the world began, and of the clock that tests can stop.
    pub(crate) began: (Timestamp, Instant),
}

/// A request and what it leads to, found before anything can go wrong with it.
pub(crate) struct Arrival<'a> {
    request: &'a Request<'a>,
    route: Route<'a>,
    query: Option<Result<Query, Refusal>>,
    order: Order,
    now: Timestamp,
}

impl Arrival<'_> {
    fn query(&self) -> Option<&Query> {
        self.query.as_ref().and_then(|query| query.as_ref().ok())
    }

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
    pub(crate) fn endpoint(&self) -> &'static str {
        match self.route {
            Route::List(endpoint) => endpoint.path(),
            Route::Compra { .. } => "/v1/orgaos",
            Route::Nowhere => "elsewhere",
        }
    }
}

impl State {
    pub(crate) fn now(&self) -> Timestamp {
        let (then, since) = self.began;
        then.saturating_add(since.elapsed()).unwrap_or(then)
    }

    pub(crate) fn arrive<'a>(&self, request: &'a Request<'a>, order: Order) -> Arrival<'a> {
        let route = api::route(request.path);
        let query = match route {
            Route::List(endpoint) if request.method == "GET" => {
                Some(api::parse(endpoint, request.query, self.volume.today))
            }
            _ => None,
        };
        Arrival { request, route, query, order, now: self.now() }
    }

    pub(crate) fn listing(&self, selection: &Selection) -> Listing {
        let overlay = self.overlay.read().clone();
        Listing::new(&self.volume, overlay, &self.records, selection)
    }

    pub(crate) fn drift(&self, changes: &[&faults::Change]) {
        if !changes.is_empty() {
            let mut overlay = self.overlay.write();
            let mut next = Overlay::clone(&overlay);
            faults::apply(changes, &self.volume, &mut next);
            *overlay = Arc::new(next);
        }
    }

    /// The answer to a request, and how long it takes.
    pub(crate) fn respond(
        &self,
        arrival: &Arrival<'_>,
        live: &Live,
        dice: &mut Dice,
        ticket: &mut Ticket,
    ) -> (Reply, Duration) {
        let query = arrival.query();
        if let Some(query) = query {
            self.drift(&live.due(&query.selection));
        }
        let page = query.map_or(1, |query| query.page);
        let delay = faults::delay(&live.faults.latency, page, dice);
        if let Some(outage) = live.outage() {
            return if outage.as_unavailable {
                (Reply::gateway(503), delay)
            } else {
                (Reply::failed(Ending::Hang), outage.left)
            };
        }
        if live.limit().is_some_and(|limit| ticket.in_flight > limit) {
            let as_server_error =
                live.faults.in_flight.as_ref().is_some_and(|limit| limit.as_server_error);
            let surplus = if as_server_error {
                Reply::server_error(dice, arrival.path(), arrival.now)
            } else {
                Reply::too_many(dice)
            };
            return (surplus, Duration::ZERO);
        }
        match faults::draw(&live.faults, dice).filter(|fault| arrival.can_have(*fault)) {
            None => (self.right(arrival, None, ticket), delay),
            Some(Fault::Hang) => {
                let at_most = Duration::from_millis(live.faults.hang.at_most_ms);
                (Reply::failed(Ending::Hang), at_most)
            }
            Some(fault) => {
                let reply = self.faulty(arrival, fault, &live.faults, dice, ticket);
                ticket.spoil();
                (reply, delay)
            }
        }
    }

    fn faulty(
        &self,
        arrival: &Arrival<'_>,
        fault: Fault,
        faults: &Faults,
        dice: &mut Dice,
        ticket: &mut Ticket,
    ) -> Reply {
        let (path, now) = (arrival.path(), arrival.now);
        match fault {
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
        }
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
