//! An outage of an endpoint: pause, say so, probe, go on.
//!
//! The portal was away for hours, twice in a week, and whoever went on asking burned every task to
//! FAILED. When so many requests in a row have failed without one that went well, nothing is asked
//! any more but one probe now and then, and if that lasts long enough it is an outage, which is told
//! and for which no task is blamed. An endpoint's failures say nothing of another's, so each has its
//! own.
//!
//! A page that always fails, or a window that is too much for the server, is no outage. So a probe
//! should ask for something else, and little (`run/probe.rs`).

use std::time::Duration;

use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Failures in a row after which only probes go out;
    pub failures: u32,
    /// an outage, if nothing goes well for so long.
    pub silence: Duration,
    /// The first and the longest wait between probes.
    pub probe_every: Duration,
    pub probe_at_most_every: Duration,
}

/// How often a probe goes out until it is certain that this is an outage.
const PROBE_AT_FIRST: Duration = Duration::from_secs(2);

impl Default for Settings {
    fn default() -> Self {
        Self {
            failures: 6,
            silence: Duration::from_secs(20),
            probe_every: Duration::from_secs(5),
            probe_at_most_every: Duration::from_secs(60),
        }
    }
}

#[derive(Debug)]
pub struct Breaker {
    settings: Settings,
    /// Failures since the last success, and when the first of them was.
    failures: u32,
    failing_since: Option<Instant>,
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    probe_at: Instant,
    wait: Duration,
    is_probing: bool,
    /// Whether it has lasted long enough to be called an outage.
    is_outage: bool,
}

/// Whether a request may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Go,
    /// As the one that finds out whether the outage is over.
    Probe,
    Wait(Instant),
    /// Until the probe that is under way has ended.
    WaitForProbe,
}

/// What a request's end has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    Opened,
    Closed,
}

impl Breaker {
    pub fn new(settings: Settings) -> Self {
        Self { settings, failures: 0, failing_since: None, open: None }
    }

    /// Whether the endpoint is away.
    pub fn is_outage(&self) -> bool {
        self.open.is_some_and(|open| open.is_outage)
    }

    /// Since when nothing has gone well.
    pub fn failing_since(&self) -> Option<Instant> {
        self.failing_since
    }

    pub fn ask(&mut self, now: Instant) -> Verdict {
        match &mut self.open {
            None => Verdict::Go,
            Some(Open { is_probing: true, .. }) => Verdict::WaitForProbe,
            Some(open) if now < open.probe_at => Verdict::Wait(open.probe_at),
            Some(open) => {
                open.is_probing = true;
                Verdict::Probe
            }
        }
    }

    pub fn succeeded(&mut self) -> Change {
        self.failures = 0;
        self.failing_since = None;
        match self.open.take() {
            Some(Open { is_outage: true, .. }) => Change::Closed,
            Some(_) | None => Change::None,
        }
    }

    /// A request failed; others than the probe may have begun before it.
    pub fn failed(&mut self, now: Instant, is_probe: bool) -> Change {
        self.failures += 1;
        let since = *self.failing_since.get_or_insert(now);
        let is_silent = now.duration_since(since) >= self.settings.silence;
        let Some(open) = &mut self.open else {
            if self.failures >= self.settings.failures {
                let wait = PROBE_AT_FIRST;
                self.open = Some(Open { probe_at: now, wait, is_probing: false, is_outage: false });
            }
            return Change::None;
        };
        if !is_probe {
            return Change::None;
        }
        let mut change = Change::None;
        if open.is_outage {
            open.wait = (open.wait * 2).min(self.settings.probe_at_most_every);
        } else if is_silent {
            open.is_outage = true;
            open.wait = self.settings.probe_every;
            change = Change::Opened;
        }
        open.is_probing = false;
        open.probe_at = now + open.wait;
        change
    }

    /// A probe ended in a way that says nothing.
    pub fn probe_ended(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(begun: Instant, seconds: u64) -> Instant {
        begun + Duration::from_secs(seconds)
    }

    /// Fails until only probes go out.
    fn suspected(begun: Instant) -> Breaker {
        let mut breaker = Breaker::new(Settings::default());
        for _ in 0..6 {
            assert_eq!(breaker.ask(begun), Verdict::Go);
            assert_eq!(breaker.failed(begun, false), Change::None);
        }
        breaker
    }

    #[test]
    fn probes_that_fail_for_long_enough_are_an_outage_and_a_success_ends_it() {
        let begun = Instant::now();
        let mut breaker = suspected(begun);
        for n in 0..10 {
            let now = after(begun, 2 * n);
            assert_eq!(breaker.ask(now), Verdict::Probe);
            assert_eq!(breaker.ask(now), Verdict::WaitForProbe);
            assert_eq!(breaker.failed(now, false), Change::None, "begun before the probe");
            assert_eq!(breaker.ask(now), Verdict::WaitForProbe);
            assert_eq!(breaker.failed(now, true), Change::None, "not for long enough");
            assert_eq!(breaker.ask(now), Verdict::Wait(after(begun, 2 * n + 2)));
            assert!(!breaker.is_outage());
        }
        assert_eq!(breaker.ask(after(begun, 20)), Verdict::Probe);
        assert_eq!(breaker.failed(after(begun, 20), true), Change::Opened);
        assert!(breaker.is_outage());
        assert_eq!(breaker.ask(after(begun, 21)), Verdict::Wait(after(begun, 25)));
        assert_eq!(breaker.ask(after(begun, 25)), Verdict::Probe);
        assert_eq!(breaker.failed(after(begun, 30), true), Change::None);
        assert_eq!(breaker.ask(after(begun, 31)), Verdict::Wait(after(begun, 40)), "twice as long");
        assert_eq!(breaker.ask(after(begun, 40)), Verdict::Probe);
        assert_eq!(breaker.succeeded(), Change::Closed);
        assert_eq!(breaker.ask(after(begun, 41)), Verdict::Go);
    }

    #[test]
    fn a_probe_that_goes_well_was_no_outage() {
        let begun = Instant::now();
        let mut breaker = suspected(begun);
        assert_eq!(breaker.ask(begun), Verdict::Probe);
        assert_eq!(breaker.succeeded(), Change::None, "nothing was told");
        assert_eq!(breaker.ask(begun), Verdict::Go);
    }

    #[test]
    fn failures_between_successes_are_no_outage() {
        let begun = Instant::now();
        let mut breaker = Breaker::new(Settings::default());
        for n in 0..1000 {
            assert_eq!(breaker.ask(after(begun, n)), Verdict::Go);
            assert_eq!(breaker.failed(after(begun, n), false), Change::None);
            if n % 5 == 4 {
                assert_eq!(breaker.succeeded(), Change::None);
            }
        }
    }

    #[test]
    fn probes_become_rare_but_not_too_rare() {
        let begun = Instant::now();
        let mut breaker = suspected(begun);
        let (mut now, mut probes) = (begun, 0);
        while now < after(begun, 600) {
            match breaker.ask(now) {
                Verdict::Wait(until) => now = until,
                Verdict::Probe => {
                    probes += 1;
                    breaker.failed(now, true);
                }
                other => panic!("{other:?}"),
            }
        }
        assert!((15..=30).contains(&probes), "{probes} probes in ten minutes");
    }
}
