//! The life of a scrape job: decided when it begins, unless it is cancelled or its session ends.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::ads::Filters;
use super::config::fraction;
use super::faults::{FleetFaults, JobFault, draw};
use super::session::Break;
use crate::dice::Dice;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) worker: usize,
    pub(super) mission: Option<Arc<str>>,
    pub(super) filters: Filters,
    /// How many ads there are.
    pub(super) count: u64,
    pub(super) ignores_cancel: bool,
    tells_progress: bool,
    started: Duration,
    length: Duration,
    plan: Plan,
    /// When it stopped moving, because its session did.
    frozen: Option<Duration>,
    /// When it was ended from outside.
    ended: Option<(Duration, Phase)>,
}

/// What comes of it if nobody touches it; shares are of its length.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Ends(Phase),
    EndsEarly(f64, Phase),
    Hangs(f64),
    Pauses(f64),
    /// Says so from a share on, and for ever or until its end.
    Unknown(f64, bool),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    Pending,
    Queued,
    Running,
    Paused,
    Unknown,
    Completed,
    Empty,
    Failed(Failure),
    Cancelled,
    Vanished,
}

/// What a failed job says of why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Failure {
    code: Option<&'static str>,
    blame: Option<&'static str>,
    message: &'static str,
}

const FAILURES: [Failure; 4] = [
    Failure { code: None, blame: None, message: "the page did not load" },
    Failure { code: Some("ERROR200"), blame: Some("worker"), message: "the browser crashed" },
    Failure { code: Some("ERROR200"), blame: Some("proxy"), message: "the proxy was blocked" },
    Failure { code: Some("ERROR200"), blame: None, message: "too many captchas" },
];
const DISCONNECTED: Failure = Failure {
    code: Some("ERROR103"),
    blame: Some("proxy"),
    message: "the session was disconnected",
};
const TERMINATED: Failure = Failure { code: None, blame: None, message: "the session ended" };

impl Phase {
    pub(super) const fn is_over(self) -> bool {
        match self {
            Self::Pending | Self::Queued | Self::Running | Self::Paused | Self::Unknown => false,
            Self::Completed | Self::Empty | Self::Failed(_) | Self::Cancelled | Self::Vanished => {
                true
            }
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Unknown => "archiving",
            Self::Completed => "completed",
            Self::Empty => "empty",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
            Self::Vanished => "vanished",
        }
    }
}

/// What a job is begun with.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) worker: usize,
    pub(super) mission: Option<Arc<str>>,
    pub(super) filters: Filters,
    pub(super) count: u64,
    pub(super) tells_progress: bool,
}

impl Job {
    pub(super) fn start(
        order: Order,
        now: Duration,
        length: Duration,
        faults: &FleetFaults,
        dice: &mut Dice,
    ) -> Self {
        let Order { worker, mission, filters, count, tells_progress } = order;
        let share = dice.share();
        let end = if count == 0 { Phase::Empty } else { Phase::Completed };
        let plan = match draw(&faults.jobs.kinds(), dice) {
            None => Plan::Ends(end),
            Some(JobFault::Fails) => Plan::EndsEarly(share, Phase::Failed(dice.pick(&FAILURES))),
            Some(JobFault::Cancelled) => Plan::EndsEarly(share, Phase::Cancelled),
            Some(JobFault::Vanishes) => Plan::EndsEarly(share, Phase::Vanished),
            Some(JobFault::Empty) => Plan::Ends(Phase::Empty),
            Some(JobFault::Hangs) => Plan::Hangs(share),
            Some(JobFault::Pauses) => Plan::Pauses(share),
            Some(JobFault::Unknown) => Plan::Unknown(share, dice.chance(0.5)),
        };
        let ignores_cancel = dice.chance(faults.cancel_ignored);
        let (frozen, ended) = (None, None);
        let started = now;
        Self {
            worker,
            mission,
            filters,
            count,
            ignores_cancel,
            tells_progress,
            started,
            length,
            plan,
            frozen,
            ended,
        }
    }

    /// Its session breaks under it.
    pub(super) fn breaks(&mut self, at: Duration, how: Break, dice: &mut Dice) {
        match how {
            Break::Terminated => self.end(at, Phase::Failed(TERMINATED)),
            Break::Disconnected if dice.chance(0.5) => self.end(at, Phase::Failed(DISCONNECTED)),
            Break::Stuck | Break::Disconnected => self.frozen = Some(at),
        }
    }

    /// Ends it from outside. What is over then stays as it was.
    pub(super) fn end(&mut self, at: Duration, phase: Phase) {
        if !self.phase(at).is_over() {
            self.ended = Some((at, phase));
        }
    }

    pub(super) fn phase(&self, now: Duration) -> Phase {
        match self.ended {
            Some((at, phase)) if now >= at => phase,
            _ => self.untouched(now),
        }
    }

    pub(super) fn is_over(&self, now: Duration) -> bool {
        self.phase(now).is_over()
    }

    /// Whether it came to its end by itself, with ads or without.
    pub(super) fn is_done(&self, now: Duration) -> bool {
        matches!(self.phase(now), Phase::Completed | Phase::Empty)
    }

    fn untouched(&self, now: Duration) -> Phase {
        let passed = self.passed(now);
        match self.plan {
            Plan::EndsEarly(share, phase) if passed >= share => phase,
            Plan::Pauses(share) if passed >= share => Phase::Paused,
            Plan::Hangs(_) if passed >= 0.05 => Phase::Running,
            Plan::Unknown(share, for_ever) if passed >= share && (for_ever || passed < 1.0) => {
                Phase::Unknown
            }
            _ if passed < 0.02 => Phase::Pending,
            _ if passed < 0.05 => Phase::Queued,
            _ if passed < 1.0 => Phase::Running,
            Plan::Ends(phase) => phase,
            Plan::Unknown(..) if self.count == 0 => Phase::Empty,
            _ => Phase::Completed,
        }
    }

    fn passed(&self, now: Duration) -> f64 {
        let until = self.frozen.map_or(now, |frozen| now.min(frozen));
        fraction(until.saturating_sub(self.started), self.length)
    }

    /// How much of it was done at that time.
    fn done(&self, now: Duration) -> f64 {
        let until = self.ended.map_or(now, |(at, _)| now.min(at));
        let passed = self.passed(until);
        match self.plan {
            Plan::EndsEarly(share, _) | Plan::Hangs(share) | Plan::Pauses(share) => {
                passed.min(share)
            }
            Plan::Ends(_) | Plan::Unknown(..) => passed,
        }
    }

    pub(super) fn ads_count(&self, now: Duration) -> u64 {
        match self.phase(now) {
            Phase::Completed => self.count,
            Phase::Empty | Phase::Pending | Phase::Queued => 0,
            _ => (self.count as f64 * self.done(now)) as u64,
        }
    }

    /// What `GET /scrape/{id}` says, without its data and its last brace.
    pub(super) fn report(&self, id: &str, now: Duration) -> String {
        let phase = self.phase(now);
        let mut text = String::with_capacity(160);
        let (word, count) = (phase.word(), self.ads_count(now));
        let mut put = |arguments: std::fmt::Arguments<'_>| {
            let _never_fails = text.write_fmt(arguments);
        };
        put(format_args!(r#"{{"job_id":"{id}","status":"{word}","ads_count":{count}"#));
        if self.tells_progress {
            let percent = match phase {
                Phase::Completed | Phase::Empty => 100,
                _ => (self.done(now) * 100.0) as u64,
            };
            put(format_args!(r#","progress_pct":{percent}"#));
        }
        if let Phase::Failed(Failure { code, blame, message }) = phase {
            if let Some(code) = code {
                put(format_args!(r#","error_code":"{code}""#));
            }
            if let Some(blame) = blame {
                put(format_args!(r#","blame":"{blame}""#));
            }
            put(format_args!(r#","error_message":"{message}""#));
        }
        text
    }
}

/// The ids of jobs, such as `scrape_3c434995`: the number of the job, so scattered that no two are
/// alike, and so that it can be found again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids(u32);

const SCATTER: u32 = 0x9E37_79B1;
/// The number by which the scattering is undone: their product is 1.
const GATHER: u32 = inverse(SCATTER);

const fn inverse(number: u32) -> u32 {
    let (mut found, mut step) = (number, 0);
    while step < 5 {
        found = found.wrapping_mul(2_u32.wrapping_sub(number.wrapping_mul(found)));
        step += 1;
    }
    found
}

impl Ids {
    pub(super) const fn new(seed: u64) -> Self {
        Self(crate::dice::mix(seed) as u32)
    }

    pub(super) fn id(self, number: usize) -> String {
        format!("scrape_{:08x}", (number as u32).wrapping_mul(SCATTER) ^ self.0)
    }

    pub(super) fn number(self, id: &str) -> Option<usize> {
        let hex = id.strip_prefix("scrape_").filter(|hex| hex.len() == 8)?;
        let is_ours = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let scattered = u32::from_str_radix(hex, 16).ok().filter(|_| hex.bytes().all(is_ours))?;
        Some((scattered ^ self.0).wrapping_mul(GATHER) as usize)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::fleet::ads::Format;
    use crate::fleet::config::part;
    use crate::fleet::faults::JobFaults;

    const LENGTH: Duration = Duration::from_secs(100);

    impl Job {
        fn at(&self, share: f64) -> Duration {
            self.started + part(self.length, share)
        }
    }

    fn job(count: u64, faults: JobFaults) -> Job {
        let filters = Filters::day(date(2025, 1, 15), Format::All, "pt");
        let order = Order { worker: 0, mission: None, filters, count, tells_progress: true };
        let faults = FleetFaults { jobs: faults, ..FleetFaults::default() };
        Job::start(order, Duration::from_secs(10), LENGTH, &faults, &mut Dice::of(&[1]))
    }

    fn words(job: &Job) -> Vec<&'static str> {
        let mut words: Vec<_> =
            (0..150).map(|step| job.phase(job.at(f64::from(step) / 100.0)).word()).collect();
        words.dedup();
        words
    }

    #[test]
    fn a_job_goes_through_its_statuses_and_its_count_grows() {
        let job = job(500, JobFaults::default());
        assert_eq!(words(&job), ["pending", "queued", "running", "completed"]);
        let counts: Vec<u64> =
            (0..150).map(|step| job.ads_count(job.at(f64::from(step) / 100.0))).collect();
        assert!(counts.is_sorted() && counts.first() == Some(&0) && counts.last() == Some(&500));
        let empty = super::tests::job(0, JobFaults::default());
        assert_eq!(words(&empty).last(), Some(&"empty"));
    }

    #[test]
    fn each_fault_has_its_end() {
        let ends = [
            (JobFaults { fails: 1.0, ..JobFaults::default() }, "failed"),
            (JobFaults { cancelled: 1.0, ..JobFaults::default() }, "cancelled"),
            (JobFaults { pauses: 1.0, ..JobFaults::default() }, "paused"),
            (JobFaults { hangs: 1.0, ..JobFaults::default() }, "running"),
            (JobFaults { vanishes: 1.0, ..JobFaults::default() }, "vanished"),
            (JobFaults { empty: 1.0, ..JobFaults::default() }, "empty"),
        ];
        for (faults, end) in ends {
            assert_eq!(words(&job(500, faults)).last(), Some(&end));
        }
        let unknown = job(500, JobFaults { unknown: 1.0, ..JobFaults::default() });
        assert!(words(&unknown).contains(&"archiving"));
    }

    #[test]
    fn what_is_over_cannot_be_ended_and_what_is_frozen_never_completes() {
        let mut done = job(500, JobFaults::default());
        done.end(done.at(2.0), Phase::Cancelled);
        assert_eq!(done.phase(done.at(3.0)), Phase::Completed);
        let mut done = job(500, JobFaults::default());
        done.breaks(done.at(2.0), Break::Terminated, &mut Dice::of(&[1]));
        assert_eq!(done.phase(done.at(3.0)), Phase::Completed);
        let mut broken = job(500, JobFaults::default());
        broken.breaks(broken.at(0.5), Break::Terminated, &mut Dice::of(&[1]));
        assert_eq!(broken.phase(broken.at(0.4)), Phase::Running);
        assert_eq!(broken.phase(broken.at(3.0)).word(), "failed");
        let mut frozen = job(500, JobFaults::default());
        frozen.breaks(frozen.at(0.5), Break::Stuck, &mut Dice::of(&[1]));
        assert_eq!(frozen.phase(frozen.at(9.0)), Phase::Running);
        assert_eq!(frozen.ads_count(frozen.at(9.0)), 250);
        frozen.end(frozen.at(10.0), Phase::Cancelled);
        assert_eq!(frozen.phase(frozen.at(10.0)), Phase::Cancelled);
    }

    #[test]
    fn ids_are_found_again_and_no_two_are_alike() {
        let ids = Ids::new(7);
        let mut seen = std::collections::BTreeSet::new();
        for number in (0..1000).chain([u32::MAX as usize]) {
            let id = ids.id(number);
            assert_eq!(ids.number(&id), Some(number));
            assert!(seen.insert(id));
        }
        for id in ["", "scrape_", "scrape_1", "scrape_+1234567", "scrape_ABCDEF01", "x"] {
            assert_eq!(ids.number(id), None, "{id}");
        }
    }
}
