use std::time::Duration;

use lavra_world::fleet::{Outages, SessionFaults, Window};
use lavra_world::{Fate, FleetAnswer, FleetFaults};

use super::Caller;

/// What a session says over ten minutes, without repeating itself.
fn words(change: impl FnOnce(&mut SessionFaults)) -> Vec<String> {
    let mut caller = Caller::with(|faults| change(&mut faults.sessions));
    caller.open(0, "a:1", None);
    let mut words = Vec::new();
    for _ in 0..1200 {
        words.push(caller.session(0));
        caller.wait(1);
    }
    words.dedup();
    words
}

#[test]
fn sessions_fail_in_their_ways() {
    let last = |words: Vec<String>| words.last().cloned().unwrap();
    assert_eq!(last(words(|faults| faults.stuck = 1.0)), "stuck");
    let early = words(|faults| faults.disconnected_early = 1.0);
    assert!(!early.contains(&"ready".to_owned()), "{early:?}");
    assert_eq!(last(early), "disconnected");
    let ready = words(|faults| faults.disconnected_ready = 1.0);
    assert!(ready.ends_with(&["ready".to_owned(), "disconnected".to_owned()]), "{ready:?}");
    assert_eq!(last(words(|faults| faults.terminated = 1.0)), "terminated");
    let never = words(|faults| faults.never_ready = 1.0);
    assert!(!never.contains(&"ready".to_owned()), "{never:?}");
    let unknown = words(|faults| faults.unknown = 1.0);
    assert!(unknown.contains(&"hibernating".to_owned()), "{unknown:?}");
}

#[test]
fn a_session_that_breaks_while_scraping_takes_its_job_along() {
    let mut caller = Caller::with(|faults| faults.sessions.disconnected_scraping = 1.0);
    let mut ends = Vec::new();
    for round in 0..12 {
        let mut id = caller.scraping(0, &format!("mis_{round}:0"));
        for attempt in 1..=3 {
            caller.wait(3600);
            if caller.session(0) == "disconnected" {
                break;
            }
            assert_eq!(caller.job_status(0, &id), "completed");
            id = caller.started(0, &format!("mis_{round}:{attempt}"));
        }
        assert_eq!(caller.session(0), "disconnected");
        ends.push(caller.job_status(0, &id));
        assert_eq!(caller.close(0).status, 200);
    }
    assert!(
        ends.contains(&"failed".to_owned()) && ends.contains(&"running".to_owned()),
        "{ends:?}"
    );
    assert_eq!(caller.fleet.violations(), Vec::<String>::new());
}

#[test]
fn a_session_that_ended_by_itself_holds_no_proxy() {
    let mut caller = Caller::with(|faults| faults.sessions.terminated = 1.0);
    caller.open(0, "a:1", None);
    caller.wait(3600);
    assert_eq!(caller.session(0), "terminated");
    assert_eq!(caller.fleet.sessions_open(caller.now), 0);
    caller.open(1, "a:1", None);
    assert_eq!(caller.fleet.violations(), Vec::<String>::new());
}

#[test]
fn behind_a_bad_proxy_no_session_is_ever_ready() {
    let mut caller = Caller::with(|faults| faults.bad_proxies = 0.5);
    let mut is_good = |proxy: usize| {
        let mut tries = Vec::new();
        for worker in 0..3 {
            caller.open(worker, &format!("p{proxy}:1"), None);
            caller.wait(600);
            tries.push(caller.session(worker) == "ready");
            caller.close(worker);
        }
        assert!(tries.iter().all(|good| *good == tries[0]), "it is the proxy, not the worker");
        tries[0]
    };
    let good = (0..40).filter(|proxy| is_good(*proxy)).count();
    assert!((8..32).contains(&good), "{good}");
}

#[test]
fn a_cancel_that_is_ignored_needs_the_session_to_end() {
    let mut caller = Caller::with(|faults| faults.cancel_ignored = 1.0);
    let id = caller.scraping(0, "mis_1:1");
    caller.wait(30);
    assert_eq!(caller.cancel(0, &id).status, 200);
    assert_eq!(caller.session(0), "scraping");
    caller.close(0);
    assert_eq!(caller.job_status(0, &id), "cancelled");
}

#[test]
fn a_job_that_is_paused_or_hangs_holds_its_session() {
    for is_paused in [true, false] {
        let mut caller = Caller::with(|faults| {
            let jobs = &mut faults.jobs;
            *if is_paused { &mut jobs.pauses } else { &mut jobs.hangs } = 1.0;
        });
        let id = caller.scraping(0, "mis_1:1");
        caller.wait(20 * 3600);
        assert_eq!(caller.job_status(0, &id), if is_paused { "paused" } else { "running" });
        assert_eq!(caller.session(0), "scraping");
        caller.cancel(0, &id);
        assert_eq!(caller.session(0), "ready");
    }
}

#[test]
fn a_job_that_vanished_is_unknown_and_over() {
    let mut caller = Caller::with(|faults| faults.jobs.vanishes = 1.0);
    let id = caller.scraping(0, "mis_1:1");
    caller.wait(3600);
    let answer = caller.ask("GET", &format!("/worker/0/scrape/{id}"), None, None);
    assert_eq!((answer.status, caller.cancel(0, &id).status), (404, 404));
    assert_eq!(caller.session(0), "ready");
}

/// The answer to a request that one fault falls upon.
fn faulty(change: impl FnOnce(&mut lavra_world::fleet::RequestFaults)) -> (Caller, FleetAnswer) {
    let caller = Caller::with(|faults| change(&mut faults.worker_requests));
    let answer = caller.open(0, "a:1", None);
    (caller, answer)
}

#[test]
fn requests_fail_in_their_ways() {
    let status = |change: fn(&mut lavra_world::fleet::RequestFaults)| {
        let (caller, answer) = faulty(change);
        assert_eq!(caller.fleet.stats(caller.now).sessions_opened, 0, "it has no effect");
        answer
    };
    let html = status(|faults| faults.html = 1.0);
    assert_eq!(
        (html.status, html.value(), html.content_type),
        (200, None, "text/html; charset=utf-8")
    );
    assert_eq!(status(|faults| faults.unauthorized = 1.0).status, 401);
    assert_eq!(status(|faults| faults.too_large = 1.0).status, 413);
    assert_eq!(status(|faults| faults.unprocessable = 1.0).status, 422);
    let busy = status(|faults| faults.too_many = 1.0);
    assert_eq!((busy.status, busy.retry_after), (429, None));
    let busy = status(|faults| (faults.retry_after, faults.retry_after_seconds) = (1.0, 9));
    assert_eq!((busy.status, busy.retry_after), (429, Some(Duration::from_secs(9))));
    assert_eq!(status(|faults| faults.server_error = 1.0).status, 500);
    assert_eq!(status(|faults| faults.refused = 1.0).fate, Fate::Refused);
    assert_eq!(status(|faults| faults.timeout = 1.0).fate, Fate::Timeout);
}

#[test]
fn an_answer_that_is_lost_was_to_a_request_that_took_effect() {
    let (caller, answer) = faulty(|faults| faults.lost = 1.0);
    assert_eq!((answer.fate, answer.status, answer.body.len()), (Fate::Timeout, 0, 0));
    assert_eq!(caller.fleet.stats(caller.now).sessions_opened, 1);
    let (caller, answer) = faulty(|faults| (faults.slow, faults.slow_most_ms) = (1.0, 60_000));
    assert_eq!((answer.status, answer.fate), (200, Fate::Delivered));
    assert!(answer.delay > Duration::from_millis(120), "{:?}", answer.delay);
    assert_eq!(caller.fleet.stats(caller.now).sessions_opened, 1);
    let caller = Caller::with(|faults| faults.worker_requests.reset = 1.0);
    for number in 0..40 {
        assert_eq!(caller.open(0, "a:1", Some(&format!("ses_{number}"))).fate, Fate::Reset);
    }
    assert!((8..32).contains(&caller.fleet.stats(caller.now).sessions_opened));
}

#[test]
fn a_server_that_is_away_refuses_and_goes_on_working() {
    let mut caller = Caller::new();
    let id = caller.scraping(0, "mis_1:1");
    let from_ms = caller.now.as_millis() as u64;
    let window = Window { from_ms, until_ms: from_ms + 3_600_000, server: Some(0) };
    let worker_outages = Outages { windows: vec![window], ..Outages::default() };
    let writer_outages = worker_outages.clone();
    let faults = FleetFaults { worker_outages, writer_outages, ..FleetFaults::default() };
    caller.fleet.set_faults(faults).unwrap();
    assert_eq!(caller.close(0).fate, Fate::Refused);
    assert_eq!(caller.results(0, &id).fate, Fate::Refused);
    assert_eq!(caller.process(None, "http://x").fate, Fate::Refused);
    assert_eq!(caller.session(1), "404", "others are there");
    caller.wait(3600);
    assert_eq!(caller.job_status(0, &id), "completed");
}

#[test]
fn a_session_that_cannot_be_closed_stays() {
    let mut caller = Caller::with(|faults| faults.close_fails = 1.0);
    let id = caller.scraping(0, "mis_1:1");
    assert_eq!(caller.close(0).status, 500);
    assert_eq!(caller.session(0), "scraping");
    assert!(["pending", "queued"].contains(&caller.job_status(0, &id).as_str()));
}
