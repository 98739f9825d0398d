//! An outage of an endpoint: pause, say so, probe, go on.
//!
//! The portal was away for hours, twice in a week, and whoever went on asking burned every task to
//! FAILED. When so many requests in a row have failed without one that went well, for long enough,
//! the breaker opens: nothing is asked but one probe now and then, and no task is blamed. An
//! endpoint's failures say nothing of another's, so each has its own.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Failures in a row that may be an outage,
    pub failures: u32,
    /// if nothing went well for so long.
    pub silence: Duration,
    /// The first and the longest wait between probes.
    pub probe_every: Duration,
    pub probe_at_most_every: Duration,
}

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

    pub fn is_open(&self) -> bool {
        self.open.is_some()
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
            Some(_) => Change::Closed,
            None => Change::None,
        }
    }

    pub fn failed(&mut self, now: Instant) -> Change {
        self.failures += 1;
        let since = *self.failing_since.get_or_insert(now);
        if let Some(open) = &mut self.open {
            if open.is_probing {
                open.wait = (open.wait * 2).min(self.settings.probe_at_most_every);
                open.probe_at = now + open.wait;
                open.is_probing = false;
            }
            return Change::None;
        }
        let is_outage = self.failures >= self.settings.failures
            && now.duration_since(since) >= self.settings.silence;
        if !is_outage {
            return Change::None;
        }
        let wait = self.settings.probe_every;
        self.open = Some(Open { probe_at: now + wait, wait, is_probing: false });
        Change::Opened
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

    #[test]
    fn an_outage_opens_it_one_probe_at_a_time_goes_out_and_a_success_closes_it() {
        let begun = Instant::now();
        let mut breaker = Breaker::new(Settings::default());
        for n in 0..20 {
            assert_eq!(breaker.ask(after(begun, n)), Verdict::Go);
            assert_eq!(breaker.failed(after(begun, n)), Change::None, "not for long enough");
        }
        assert_eq!(breaker.failed(after(begun, 20)), Change::Opened);
        assert_eq!(breaker.ask(after(begun, 21)), Verdict::Wait(after(begun, 25)));
        assert_eq!(breaker.ask(after(begun, 25)), Verdict::Probe);
        assert_eq!(breaker.ask(after(begun, 25)), Verdict::WaitForProbe);
        assert_eq!(breaker.failed(after(begun, 30)), Change::None);
        assert_eq!(breaker.ask(after(begun, 31)), Verdict::Wait(after(begun, 40)), "twice as long");
        assert_eq!(breaker.ask(after(begun, 40)), Verdict::Probe);
        assert_eq!(breaker.succeeded(), Change::Closed);
        assert_eq!(breaker.ask(after(begun, 41)), Verdict::Go);
    }

    #[test]
    fn failures_between_successes_are_no_outage() {
        let begun = Instant::now();
        let mut breaker = Breaker::new(Settings::default());
        for n in 0..1000 {
            assert_eq!(breaker.failed(after(begun, n)), Change::None);
            if n % 5 == 4 {
                assert_eq!(breaker.succeeded(), Change::None);
            }
        }
    }

    #[test]
    fn probes_become_rare_but_not_too_rare() {
        let begun = Instant::now();
        let mut breaker = Breaker::new(Settings::default());
        let mut now = begun;
        while breaker.failed(now) == Change::None {
            now += Duration::from_secs(5);
        }
        let mut probes = 0;
        let outage = after(now, 600);
        while now < outage {
            match breaker.ask(now) {
                Verdict::Wait(until) => now = until,
                Verdict::Probe => {
                    probes += 1;
                    breaker.failed(now);
                }
                other => panic!("{other:?}"),
            }
        }
        assert!((10..=20).contains(&probes), "{probes} probes in ten minutes");
    }
}
