//! A small orchestrator that does everything right, and one that does not: the one is accused of
//! nothing on the worst of days, the other is found out.

use std::collections::VecDeque;
use std::time::Duration;

use lavra_world::{Fate, FleetAnswer, FleetConfig, FleetFaults, FleetWorld};

use super::Caller;

const WORKERS: usize = 6;
const MISSIONS: usize = 60;

struct Orchestrator {
    caller: Caller,
    workers: Vec<State>,
    proxies: VecDeque<usize>,
    /// Missions that wait, with their attempts.
    queue: VecDeque<(usize, u32)>,
    sessions: u32,
    done: usize,
    /// Whether what was before is ended before the next begins.
    is_careful: bool,
}

#[derive(Clone, Debug)]
enum State {
    Idle,
    Opening { proxy: usize, key: String, since: Duration, accepted: bool },
    Ready { proxy: usize },
    Scraping { proxy: usize, mission: (usize, u32), id: Option<String>, since: Duration },
    Closing { proxy: usize, mission: Option<(usize, u32)>, since: Duration },
}

fn word(answer: &FleetAnswer, name: &str) -> Option<String> {
    answer.value().filter(|_| answer.status == 200)?[name].as_str().map(str::to_owned)
}

impl Orchestrator {
    fn new(is_careful: bool, seed: u64) -> Self {
        let fleet =
            FleetWorld::new(FleetConfig { workers: WORKERS, ..FleetConfig::default() }, seed);
        fleet.set_faults(FleetFaults::all()).unwrap();
        Self {
            caller: Caller { fleet, now: Duration::ZERO },
            workers: vec![State::Idle; WORKERS],
            proxies: (0..WORKERS + 3).collect(),
            queue: (0..MISSIONS).map(|mission| (mission, 1)).collect(),
            sessions: 0,
            done: 0,
            is_careful,
        }
    }

    fn run(&mut self) {
        while self.done < MISSIONS {
            for worker in 0..WORKERS {
                let state = self.workers[worker].clone();
                self.workers[worker] = self.step(worker, state);
            }
            self.caller.wait(10);
            assert!(self.caller.now < Duration::from_secs(14 * 86_400), "{:?}", self.workers);
        }
    }

    fn step(&mut self, worker: usize, state: State) -> State {
        let now = self.caller.now;
        match state {
            State::Idle if self.queue.is_empty() => State::Idle,
            State::Idle => match self.proxies.pop_front() {
                Some(proxy) => {
                    self.sessions += 1;
                    let key = format!("ses_{}", self.sessions);
                    State::Opening { proxy, key, since: now, accepted: false }
                }
                None => State::Idle,
            },
            State::Opening { proxy, key, since, accepted: false } => {
                let answer = self.caller.open(worker, &format!("p{proxy}:1"), Some(&key));
                match answer.value().filter(|_| answer.status == 200) {
                    Some(_) => State::Opening { proxy, key, since, accepted: true },
                    None => self.closing(proxy, None),
                }
            }
            State::Opening { proxy, since, .. } => match self.session(worker).as_deref() {
                Some("ready") => State::Ready { proxy },
                Some("stuck" | "disconnected" | "terminated") => self.closing(proxy, None),
                _ if now.saturating_sub(since) > Duration::from_secs(180) => {
                    self.closing(proxy, None)
                }
                _ => state,
            },
            State::Ready { proxy } => {
                match (self.session(worker).as_deref(), self.queue.pop_front()) {
                    (Some("ready"), Some(mission)) => {
                        State::Scraping { proxy, mission, id: None, since: now }
                    }
                    (_, mission) => self.closing(proxy, mission),
                }
            }
            State::Scraping { proxy, mission, id: None, since } => {
                let answer = self.caller.start(worker, &format!("mis_{}:{}", mission.0, mission.1));
                let is_over = now.saturating_sub(since) > Duration::from_secs(300);
                match word(&answer, "job_id") {
                    Some(id) => State::Scraping { proxy, mission, id: Some(id), since },
                    None if answer.fate != Fate::Delivered && !is_over => state,
                    None => self.closing(proxy, Some(mission)),
                }
            }
            State::Scraping { proxy, mission, id: Some(ref id), since } => {
                let url = format!("/worker/{worker}/scrape/{id}");
                let answer = self.caller.ask("GET", &url, None, None);
                let is_gone = answer.fate == Fate::Delivered && answer.status == 404;
                let is_over = now.saturating_sub(since) > Duration::from_secs(6000);
                match (word(&answer, "status").as_deref(), self.session(worker).as_deref()) {
                    (Some("completed" | "empty"), _) => {
                        self.done += 1;
                        State::Ready { proxy }
                    }
                    (Some("failed" | "cancelled" | "paused"), _)
                    | (_, Some("stuck" | "disconnected" | "terminated")) => {
                        self.closing(proxy, Some(mission))
                    }
                    _ if is_gone || is_over => self.closing(proxy, Some(mission)),
                    _ => state,
                }
            }
            State::Closing { proxy, mission, since } => {
                let answer = self.caller.close(worker);
                let is_closed =
                    answer.fate == Fate::Delivered && [200, 404].contains(&answer.status);
                let is_page = answer.status == 200 && answer.value().is_none();
                if (!is_closed || is_page) && now.saturating_sub(since) < Duration::from_secs(60) {
                    return state;
                }
                self.release(proxy, mission);
                State::Idle
            }
        }
    }

    fn session(&self, worker: usize) -> Option<String> {
        let url = format!("/worker/{worker}/session/status");
        word(&self.caller.ask("GET", &url, None, None), "status")
    }

    fn closing(&mut self, proxy: usize, mission: Option<(usize, u32)>) -> State {
        if !self.is_careful {
            self.release(proxy, mission);
            return State::Idle;
        }
        State::Closing { proxy, mission, since: self.caller.now }
    }

    fn release(&mut self, proxy: usize, mission: Option<(usize, u32)>) {
        self.proxies.push_back(proxy);
        self.queue.extend(mission.map(|(mission, attempts)| (mission, attempts + 1)));
    }
}

#[test]
fn who_does_everything_right_is_accused_of_nothing() {
    let mut faulty = 0;
    for seed in 0..20 {
        let mut orchestrator = Orchestrator::new(true, seed);
        orchestrator.run();
        let fleet = &orchestrator.caller.fleet;
        assert_eq!(fleet.violations(), Vec::<String>::new(), "seed {seed}");
        let stats = fleet.stats(orchestrator.caller.now);
        assert!(stats.workers.iter().all(|worker| worker.asked_at_once <= 1));
        assert_eq!(stats.missions.len(), MISSIONS);
        faulty += stats.fates.refused + stats.fates.timeout + stats.fates.reset;
    }
    assert!(faulty > 100, "the days were bad: {faulty}");
}

#[test]
fn who_does_not_end_what_was_before_is_found_out() {
    let mut orchestrator = Orchestrator::new(false, 1);
    orchestrator.run();
    assert!(orchestrator.caller.fleet.violation_count() > 0);
}
