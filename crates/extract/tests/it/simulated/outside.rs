//! The world as a client meets it, without sockets: what it answers takes its time, breaks off, or
//! never comes, and what was asked is written down.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::civil::Date;
use lavra_extract::Memory;
use lavra_extract::client::Fetch;
use lavra_extract::model::{ExtractionId, Status, Window};
use lavra_extract::reading::{self, Reply};
use lavra_extract::store::Reads as _;
use lavra_world::{Body, Ending, Request};
use tokio::time::Instant;
use url::Url;

use super::LISTS;

/// What comes instead of the world's answer to a request, if anything does.
pub(super) type Trouble =
    Box<dyn Fn(&Asked) -> Option<Result<Reply, reading::Trouble>> + Send + Sync>;

/// How long trouble takes.
const AT_ONCE: Duration = Duration::from_millis(30);

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) at: Duration,
    pub(super) path: String,
    pub(super) from: Date,
    pub(super) to: Date,
    pub(super) year: Option<i16>,
    pub(super) fan_out: Option<String>,
    pub(super) page: i64,
    pub(super) size: i64,
    /// Whether the page was stored as its window promises it, and nothing had moved.
    pub(super) was_durable: bool,
}

impl Asked {
    fn of(url: &Url, at: Duration) -> Self {
        let mut asked = Self {
            at,
            path: url.path().trim_start_matches("/api/consulta").to_owned(),
            from: Date::ZERO,
            to: Date::ZERO,
            year: None,
            fan_out: None,
            page: 0,
            size: 0,
            was_durable: false,
        };
        let day = |text: &str| Date::strptime("%Y%m%d", text).unwrap();
        for (name, value) in url.query_pairs() {
            match &*name {
                "dataInicial" | "dataInicio" => asked.from = day(&value),
                "dataFinal" | "dataFim" => asked.to = day(&value),
                "anoPca" => asked.year = value.parse().ok(),
                "codigoModalidadeContratacao" => asked.fan_out = Some(value.into_owned()),
                "pagina" => asked.page = value.parse().unwrap(),
                "tamanhoPagina" => asked.size = value.parse().unwrap(),
                _ => {}
            }
        }
        asked
    }

    /// The days that were asked for.
    pub(super) fn days(&self) -> i32 {
        self.from.until(self.to).unwrap().get_days() + 1
    }
}

pub(super) struct Outside {
    pub(super) world: lavra_world::World,
    pub(super) begun: Instant,
    timeout: Duration,
    max_body: usize,
    trouble: Trouble,
    memory: Memory,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    asked: Vec<Asked>,
    /// When each page arrived whole.
    given: Vec<Duration>,
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outside").field("world", &self.world).finish_non_exhaustive()
    }
}

impl Outside {
    pub(super) fn new(
        world: lavra_world::World,
        timeout: Duration,
        max_body: usize,
        trouble: Trouble,
        memory: Memory,
    ) -> Self {
        let (begun, log) = (Instant::now(), Mutex::default());
        Self { world, begun, timeout, max_body, trouble, memory, log }
    }

    /// Whether nobody should ask for this any more.
    async fn is_durable(&self, asked: &Asked) -> bool {
        let Some((name, ..)) = LISTS.iter().find(|(_, endpoint, fan_out)| {
            endpoint.path() == asked.path && fan_out.map(|f| f.to_string()) == asked.fan_out
        }) else {
            return false;
        };
        let id = ExtractionId::new(name, asked.from.first_of_month());
        let Some(task) = self.memory.task(&id).await.unwrap() else { return false };
        // Whoever finds out the totals again asks for page 1 of each window.
        if asked.page == 1 && task.status == Status::Discovering {
            return false;
        }
        let windows = self.memory.windows(&id).await.unwrap();
        let of = |window: &&Window| {
            let last = window.last_day;
            window.first_day == asked.from && [last, last.tomorrow().unwrap()].contains(&asked.to)
        };
        let Some((window, totals)) = windows.iter().find(of).and_then(|w| Some((w, w.totals?)))
        else {
            return false;
        };
        let stored = self.memory.stored(&id).await.unwrap();
        stored.iter().any(|stored| {
            stored.page == window.base + asked.page
                && stored.generation == task.generation
                && stored.total_records == totals.records
                && stored.records == totals.expected(asked.page, asked.size)
        })
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that was asked, in its order.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.log().asked.clone()
    }

    /// How many requests came in this time.
    pub(super) fn asked_during(&self, time: std::ops::Range<Duration>) -> usize {
        self.log().asked.iter().filter(|asked| time.contains(&asked.at)).count()
    }

    /// How many pages arrived whole in this time.
    pub(super) fn given_during(&self, time: std::ops::Range<Duration>) -> usize {
        self.log().given.iter().filter(|at| time.contains(*at)).count()
    }

    async fn answer(&self, asked: &Asked, url: &Url) -> Result<Reply, reading::Trouble> {
        if let Some(instead) = (self.trouble)(asked) {
            tokio::time::sleep(AT_ONCE).await;
            return instead;
        }
        let query = url.query().unwrap_or_default();
        let answer = self.world.answer(&Request { method: "GET", path: url.path(), query });
        tokio::time::sleep(answer.delay).await;
        let lost = |reason: &str| Err(reading::Trouble::Connection(reason.into()));
        match answer.ending {
            Ending::Whole => {}
            Ending::Cut => return lost("the body broke off"),
            Ending::Reset => return lost("reset by the peer"),
            Ending::Hang => return lost("closed without an answer"),
        }
        if answer.body.len() > self.max_body as u64 {
            return Err(reading::Trouble::TooLarge { limit: self.max_body });
        }
        let body = match &answer.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Filler(length) => Bytes::from(Body::filler(*length).collect::<Vec<_>>().concat()),
        };
        let headers = answer.headers.iter().map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let reply = Reply { status: answer.status, headers: headers.collect(), body };
        answer.delivered();
        Ok(reply)
    }
}

#[async_trait]
impl Fetch for Outside {
    async fn fetch(&self, url: &Url) -> Result<Reply, reading::Trouble> {
        let mut asked = Asked::of(url, self.begun.elapsed());
        asked.was_durable = self.is_durable(&asked).await;
        self.log().asked.push(asked.clone());
        let answer = tokio::time::timeout(self.timeout, self.answer(&asked, url)).await;
        let answer = answer.unwrap_or(Err(reading::Trouble::Timeout(self.timeout)));
        if answer.as_ref().is_ok_and(|reply| reply.status == 200) {
            self.log().given.push(self.begun.elapsed());
        }
        answer
    }
}

/// An answer in a few words.
pub(super) fn reply(status: u16, body: &'static str) -> Reply {
    Reply { status, headers: Vec::new(), body: Bytes::from_static(body.as_bytes()) }
}
