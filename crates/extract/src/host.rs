//! One place that says who may ask the host now: the limiter, the breakers, the wish of the server
//! to be left alone for a while, and the endpoints that bear less than the rest.
//!
//! All runs and audits of a process that ask one server share its host: the server counts the
//! requests of this machine, not of a run.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use url::{Origin, Url};

use crate::breaker::{self, Breaker, Change, Verdict};
use crate::limiter::Limiter;
use crate::reading::{Kind, Reading};

/// The longest wait between requests to a host that refuses even one at a time.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Host {
    state: Mutex<State>,
    changed: Notify,
    breaker: breaker::Settings,
}

#[derive(Debug)]
struct State {
    limiter: Limiter,
    endpoints: HashMap<String, Endpoint>,
    not_before: Option<Instant>,
    /// Refusals in a row while only one was allowed.
    pauses: u32,
}

#[derive(Debug)]
struct Endpoint {
    in_flight: usize,
    breaker: Breaker,
    /// Whether all that ever came of it was no answer of such a source.
    is_senseless: bool,
}

/// The hosts that this process asks.
static HOSTS: LazyLock<Mutex<HashMap<Origin, Weak<Host>>>> = LazyLock::new(Mutex::default);

/// How a request ended, as far as the host is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Well,
    /// There were too many.
    Throttled {
        wait: Option<Duration>,
    },
    /// It failed, perhaps for that reason.
    Failed {
        wait: Option<Duration>,
    },
    /// It was answered, with something that has no place here.
    Senseless,
}

impl Ended {
    /// What an answer says of the host.
    pub fn of(reading: &Reading) -> Self {
        match reading {
            // A refusal is an answer too, only not as one would like.
            Reading::Data(_) | Reading::Empty | Reading::PastEnd | Reading::Refused(_) => {
                Self::Well
            }
            Reading::Retry(failure) => match failure.kind {
                Kind::Throttled => Self::Throttled { wait: failure.wait },
                Kind::Refused => Self::Well,
                Kind::Garbled => Self::Senseless,
                Kind::Server | Kind::Timeout | Kind::Connection | Kind::TooLarge => {
                    Self::Failed { wait: failure.wait }
                }
            },
        }
    }
}

/// What the host bears now, for people to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub limit: usize,
    pub in_flight: usize,
    pub not_before: Option<Instant>,
    pub open: Vec<String>,
}

enum Answer {
    Go { is_probe: bool },
    Wait(Option<Instant>),
}

impl Host {
    /// The host that `url` is at: the same for all who ask it at a time, with the lowest of their caps.
    pub fn shared(url: &Url, cap: usize, breaker: breaker::Settings) -> Arc<Self> {
        let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|_, host| host.strong_count() > 0);
        if let Some(host) = hosts.get(&url.origin()).and_then(Weak::upgrade) {
            host.state().limiter.lower_cap(cap, Instant::now());
            return host;
        }
        let host = Self::new(cap, breaker);
        hosts.insert(url.origin(), Arc::downgrade(&host));
        host
    }

    pub fn new(cap: usize, breaker: breaker::Settings) -> Arc<Self> {
        let state = State {
            limiter: Limiter::new(cap, Instant::now()),
            endpoints: HashMap::new(),
            not_before: None,
            pauses: 0,
        };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new(), breaker })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn condition(&self) -> Condition {
        let state = self.state();
        let open = state.endpoints.iter().filter(|(_, endpoint)| endpoint.breaker.is_outage());
        let mut open: Vec<String> = open.map(|(name, _)| name.clone()).collect();
        open.sort();
        Condition {
            limit: state.limiter.limit(),
            in_flight: state.limiter.in_flight(),
            not_before: state.not_before.filter(|time| *time > Instant::now()),
            open,
        }
    }

    /// For how long nothing of an endpoint has gone well, while it is taken for away.
    pub fn away_for(&self, endpoint: &str) -> Option<Duration> {
        let state = self.state();
        let breaker = &state.endpoints.get(endpoint)?.breaker;
        breaker.failing_since().filter(|_| breaker.is_outage()).map(|since| since.elapsed())
    }

    /// Whether an endpoint has answered, and never with anything that makes sense: it may not be what it
    /// is taken for.
    pub fn is_senseless(&self, endpoint: &str) -> bool {
        self.state().endpoints.get(endpoint).is_some_and(|endpoint| endpoint.is_senseless)
    }

    /// Waits until a request to `endpoint` may go out; of those at most `most` at once.
    pub async fn permit(self: &Arc<Self>, endpoint: &str, most: Option<usize>) -> Permit {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.ask(endpoint, most) {
                Answer::Go { is_probe } => {
                    return Permit {
                        host: Arc::clone(self),
                        endpoint: endpoint.to_owned(),
                        begun: Instant::now(),
                        is_probe,
                        is_landed: false,
                        is_over: false,
                    };
                }
                Answer::Wait(Some(until)) => {
                    let _which = tokio::time::timeout_at(until, changed).await;
                }
                Answer::Wait(None) => changed.await,
            }
        }
    }

    fn ask(&self, name: &str, most: Option<usize>) -> Answer {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(time) = state.not_before.filter(|time| *time > now) {
            return Answer::Wait(Some(time));
        }
        let State { limiter, endpoints, .. } = &mut *state;
        let endpoint = endpoints.entry(name.to_owned()).or_insert_with(|| Endpoint {
            in_flight: 0,
            breaker: Breaker::new(self.breaker),
            is_senseless: true,
        });
        if most.is_some_and(|most| endpoint.in_flight >= most)
            || limiter.in_flight() >= limiter.limit()
        {
            return Answer::Wait(None);
        }
        let is_probe = match endpoint.breaker.ask(now) {
            Verdict::Go => false,
            Verdict::Probe => true,
            Verdict::Wait(until) => return Answer::Wait(Some(until)),
            Verdict::WaitForProbe => return Answer::Wait(None),
        };
        limiter.begin();
        endpoint.in_flight += 1;
        Answer::Go { is_probe }
    }

    fn land(&self, permit: &mut Permit) {
        if std::mem::replace(&mut permit.is_landed, true) {
            return;
        }
        let mut state = self.state();
        state.limiter.landed();
        if let Some(endpoint) = state.endpoints.get_mut(&permit.endpoint) {
            endpoint.in_flight = endpoint.in_flight.saturating_sub(1);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn end(&self, permit: &mut Permit, ended: Option<Ended>) -> Change {
        self.land(permit);
        let now = Instant::now();
        let mut state = self.state();
        let State { limiter, endpoints, not_before, pauses } = &mut *state;
        let mut change = Change::None;
        if let Some(endpoint) = endpoints.get_mut(&permit.endpoint) {
            endpoint.is_senseless &= matches!(ended, None | Some(Ended::Senseless));
            change = match ended {
                None => {
                    if permit.is_probe {
                        endpoint.breaker.probe_ended();
                    }
                    Change::None
                }
                Some(Ended::Well) => endpoint.breaker.succeeded(),
                Some(Ended::Throttled { .. } | Ended::Failed { .. } | Ended::Senseless) => {
                    endpoint.breaker.failed(now, permit.is_probe)
                }
            };
        }
        match ended {
            None => {}
            Some(Ended::Well) => {
                limiter.succeeded(permit.begun, now);
                *pauses = 0;
            }
            Some(Ended::Throttled { .. }) => limiter.refused(permit.begun, now),
            Some(Ended::Failed { .. } | Ended::Senseless) => limiter.strained(permit.begun, now),
        }
        match change {
            Change::Closed => limiter.restart(now),
            Change::Opened | Change::None => {}
        }
        if let Some(Ended::Throttled { wait } | Ended::Failed { wait }) = ended {
            let mut pause = wait;
            if matches!(ended, Some(Ended::Throttled { .. }))
                && limiter.limit() == 1
                && wait.is_none()
            {
                *pauses += 1;
                let seconds = 1_u64 << (*pauses).min(6);
                pause = Some(Duration::from_secs(seconds).min(LONGEST_PAUSE) / 2);
            }
            let until = pause.map(|pause| now + pause);
            *not_before = (*not_before).max(until);
        }
        drop(state);
        self.changed.notify_waiters();
        change
    }
}

/// The right to have one request under way.
#[derive(Debug)]
pub struct Permit {
    host: Arc<Host>,
    endpoint: String,
    begun: Instant,
    is_probe: bool,
    is_landed: bool,
    is_over: bool,
}

impl Permit {
    /// Whether it is to find out if the endpoint answers at all.
    pub fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// The answer has come: another request may go out while this one is looked at.
    pub fn land(&mut self) {
        let host = Arc::clone(&self.host);
        host.land(self);
    }

    /// Tells the host how it went; says whether an outage began or ended by it.
    pub fn end(mut self, ended: Ended) -> Change {
        self.is_over = true;
        let host = Arc::clone(&self.host);
        host.end(&mut self, Some(ended))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_over {
            let host = Arc::clone(&self.host);
            host.end(self, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_who_ask_a_host_share_it_with_the_lowest_of_their_caps() {
        let url = |text: &str| Url::parse(text).unwrap();
        let shared = |text: &str, cap| Host::shared(&url(text), cap, breaker::Settings::default());
        let one = shared("http://shared.example:8090/api/consulta", 8);
        let other = shared("http://shared.example:8090/api/another", 1);
        assert!(Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &shared("http://shared.example:8091/api/consulta", 8)));
        let permit = one.permit("a", None).await;
        assert_eq!(other.condition().in_flight, 1);
        permit.end(Ended::Well);
        for _ in 0..10 {
            one.permit("a", None).await.end(Ended::Well);
        }
        assert_eq!(one.condition().limit, 1);
        let before = Arc::downgrade(&one);
        drop((one, other));
        assert!(before.upgrade().is_none(), "nobody asks it any more");
    }
}
