use lavra_world::FleetFaults;
use lavra_world::fleet::{Outages, Window};

use super::Caller;

#[track_caller]
fn one(caller: &Caller, part: &str) {
    let violations = caller.fleet.violations();
    assert!(violations.len() == 1 && violations[0].contains(part), "{violations:?}");
    assert_eq!(caller.fleet.violation_count(), 1);
    assert_eq!(caller.fleet.stats(caller.now).violations, 1);
}

#[test]
fn a_second_scrape_beside_the_first() {
    let mut caller = Caller::new();
    let id = caller.scraping(0, "mis_1:1");
    assert_eq!(caller.start(0, "mis_2:1").status, 422);
    one(&caller, "worker 0 was asked to scrape for mis_2:1 while a job runs");
    let stats = caller.fleet.stats(caller.now);
    assert_eq!(stats.workers[0].asked_at_once, 2);
    assert_eq!(stats.workers[0].job, Some(id));
}

#[test]
fn a_scrape_without_a_session_or_too_early() {
    let caller = Caller::new();
    assert_eq!(caller.start(0, "mis_1:1").status, 422);
    one(&caller, "there is no session");
    let caller = Caller::new();
    caller.open(0, "a:1", None);
    assert_eq!(caller.start(0, "mis_1:1").status, 422);
    one(&caller, "the session is not ready");
}

#[test]
fn a_session_that_broke_by_itself_is_nobodys_fault() {
    let mut caller = Caller::with(|faults| faults.sessions.stuck = 1.0);
    caller.open(0, "a:1", None);
    caller.wait(3600);
    assert_eq!(caller.start(0, "mis_1:1").status, 422);
    assert_eq!(caller.fleet.violation_count(), 0);
}

#[test]
fn a_mission_on_two_workers_at_once() {
    let mut caller = Caller::new();
    caller.scraping(0, "mis_1:1");
    caller.scraping(1, "mis_1:2");
    one(&caller, "the mission mis_1 was started on worker 1 while its job");
    let mission = &caller.fleet.stats(caller.now).missions["mis_1"];
    assert_eq!(mission.running_on, [0, 1]);
    caller.wait(3600);
    caller.started(0, "mis_1:3");
    assert_eq!(caller.fleet.violation_count(), 1, "when the others are over it may");
}

#[test]
fn two_sessions_behind_one_proxy() {
    let mut caller = Caller::new();
    caller.open(0, "a:1", None);
    caller.open(0, "a:1", None);
    caller.close(0);
    caller.open(1, "a:1", None);
    caller.open(2, "b:1", None);
    assert_eq!(caller.fleet.violation_count(), 0, "one after the other is right");
    caller.wait(10);
    caller.open(0, "a:1", None);
    one(&caller, "a session of worker 0 was opened behind user@a:1, where one of worker 1 is open");
    let stats = caller.fleet.stats(caller.now);
    assert_eq!(stats.proxies_in_use["user@a:1"], [0, 1]);
    assert_eq!(stats.sessions_open, 3);
}

#[test]
fn who_tried_to_close_what_was_before_is_excused() {
    let mut caller = Caller::with(|faults| faults.close_fails = 1.0);
    caller.scraping(0, "mis_1:1");
    assert_eq!(caller.close(0).status, 500);
    caller.open(1, "proxy0:8080", None);
    caller.wait(90);
    caller.started(1, "mis_1:2");
    assert_eq!(caller.fleet.violations(), Vec::<String>::new());
    assert_eq!(caller.fleet.excused().len(), 2, "{:?}", caller.fleet.excused());
}

#[test]
fn who_could_not_reach_what_was_before_is_excused_only_if_it_tried() {
    for has_tried in [true, false] {
        let mut caller = Caller::new();
        caller.scraping(0, "mis_1:1");
        let window = Window { from_ms: 0, until_ms: u64::MAX, server: Some(0) };
        let worker_outages = Outages { windows: vec![window], ..Outages::default() };
        caller.fleet.set_faults(FleetFaults { worker_outages, ..FleetFaults::default() }).unwrap();
        if has_tried {
            caller.close(0);
        }
        caller.open(1, "proxy0:8080", None);
        caller.wait(90);
        caller.started(1, "mis_1:2");
        let found = (caller.fleet.violations().len(), caller.fleet.excused().len());
        assert_eq!(found, if has_tried { (0, 2) } else { (2, 0) });
    }
}
