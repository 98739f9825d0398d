//! The life of a session: all of it is decided when it begins, but for the jobs it is given.

use std::sync::Arc;
use std::time::Duration;

use super::ads::hash;
use super::config::{fraction, part};
use super::faults::{FleetFaults, SessionFault, draw};
use crate::dice::Dice;

#[derive(Debug)]
pub(super) struct Session {
    /// The user and the server: many doors of one provider are different proxies.
    pub(super) proxy: Arc<str>,
    opened: Duration,
    warm_up: Duration,
    breaks: Option<(Duration, Break)>,
    /// In which share of the warm-up it stays for ever.
    stays: Option<f64>,
    /// From which share on it says what nobody knows.
    unknown: Option<f64>,
    /// The job in which it is disconnected, and after which share of it.
    breaks_in_job: Option<(u32, f64)>,
    /// The current or last job, by its number in the world.
    pub(super) job: Option<usize>,
    pub(super) jobs: u32,
    /// Someone tried to close it and could not: what it still does is not theirs to answer for.
    pub(super) close_failed: bool,
}

/// How a session ends by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Break {
    Stuck,
    Disconnected,
    Terminated,
}

/// What a session says of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Now {
    /// One of the statuses on the way, or one that nobody knows.
    WarmingUp(&'static str),
    /// With a job or without.
    Ready,
    Broken(Break),
}

impl Now {
    /// The word for it.
    pub(super) const fn word(self, is_scraping: bool) -> &'static str {
        match self {
            Self::WarmingUp(word) => word,
            Self::Ready if is_scraping => "scraping",
            Self::Ready => "ready",
            Self::Broken(Break::Stuck) => "stuck",
            Self::Broken(Break::Disconnected) => "disconnected",
            Self::Broken(Break::Terminated) => "terminated",
        }
    }
}

impl Session {
    pub(super) fn open(
        proxy: Arc<str>,
        now: Duration,
        warm_up: Duration,
        faults: &FleetFaults,
        seed: u64,
        dice: &mut Dice,
    ) -> Self {
        let mut session = Self {
            opened: now,
            warm_up,
            breaks: None,
            stays: None,
            unknown: None,
            breaks_in_job: None,
            job: None,
            jobs: 0,
            close_failed: false,
            proxy,
        };
        let after = |share: f64| now.saturating_add(part(warm_up, share));
        let share = dice.share();
        if Dice::of(&[seed, hash(&session.proxy), 0xBAD0]).chance(faults.bad_proxies) {
            match dice.below(3) {
                0 => session.stays = Some(0.2 + share * 0.3),
                1 => session.breaks = Some((after(share), Break::Stuck)),
                _ => session.breaks = Some((after(share), Break::Disconnected)),
            }
            return session;
        }
        match draw(&faults.sessions.kinds(), dice) {
            None => {}
            Some(SessionFault::Stuck) => session.breaks = Some((after(share * 3.0), Break::Stuck)),
            Some(SessionFault::DisconnectedEarly) => {
                session.breaks = Some((after(share), Break::Disconnected));
            }
            Some(SessionFault::DisconnectedReady) => {
                session.breaks = Some((after(1.0 + share), Break::Disconnected));
            }
            Some(SessionFault::DisconnectedScraping) => {
                session.breaks_in_job = Some((1 + dice.below(3) as u32, share));
            }
            Some(SessionFault::Terminated) => {
                session.breaks = Some((after(share * 10.0), Break::Terminated));
            }
            Some(SessionFault::NeverReady) => session.stays = Some(share),
            Some(SessionFault::Unknown) => {
                session.unknown = Some(0.7);
                session.stays = dice.chance(0.5).then_some(0.9);
            }
        }
        session
    }

    pub(super) fn now(&self, now: Duration) -> Now {
        if let Some((at, broken)) = self.breaks
            && now >= at
        {
            return Now::Broken(broken);
        }
        let passed = fraction(now.saturating_sub(self.opened), self.warm_up);
        let passed = self.stays.map_or(passed, |stays| passed.min(stays));
        if passed >= 1.0 {
            return Now::Ready;
        }
        if self.unknown.is_some_and(|from| passed >= from) {
            return Now::WarmingUp("hibernating");
        }
        Now::WarmingUp(match passed {
            ..0.15 => "initializing",
            ..0.35 => "connecting",
            ..0.6 => "authenticating",
            _ => "warming_up",
        })
    }

    /// Whether it holds its proxy: until it is closed, unless it ended by itself.
    pub(super) fn is_open(&self, now: Duration) -> bool {
        self.now(now) != Now::Broken(Break::Terminated)
    }

    /// Takes a job of that length, and says when and how the session breaks under it.
    pub(super) fn take(
        &mut self,
        job: usize,
        now: Duration,
        length: Duration,
    ) -> Option<(Duration, Break)> {
        self.job = Some(job);
        self.jobs += 1;
        if let Some((number, share)) = self.breaks_in_job
            && number == self.jobs
            && self.breaks.is_none()
        {
            self.breaks = Some((now.saturating_add(part(length, share)), Break::Disconnected));
        }
        self.breaks
    }
}
