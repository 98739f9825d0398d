use jiff::ToSpan;
use lavra_world::FleetRequest;
use lavra_world::fleet::{Ad, Filters, Format};
use serde_json::json;

use super::{Caller, DAY, scrape};

#[test]
fn a_session_warms_up_scrapes_and_is_closed() {
    let mut caller = Caller::new();
    assert_eq!(caller.session(0), "404");
    assert_eq!(caller.close(0).status, 404);
    caller.open(0, "a:1", None);
    let mut words = Vec::new();
    for _ in 0..100 {
        words.push(caller.session(0));
        caller.wait(1);
    }
    words.dedup();
    assert_eq!(words, ["initializing", "connecting", "authenticating", "warming_up", "ready"]);
    let id = caller.started(0, "mis_1:1");
    assert!(id.strip_prefix("scrape_").is_some_and(|hex| hex.len() == 8), "{id}");
    let (mut words, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let job = caller.job(0, &id);
        words.push(job["status"].as_str().unwrap().to_owned());
        counts.push(job["ads_count"].as_u64().unwrap());
        let is_over = job["status"] == "completed";
        assert_eq!(caller.session(0), if is_over { "ready" } else { "scraping" });
        caller.wait(5);
    }
    words.dedup();
    assert_eq!(words, ["pending", "queued", "running", "completed"]);
    assert!(counts.is_sorted());
    let truth = caller.fleet.truth(&Filters::day(DAY, Format::All, "pt"));
    assert_eq!(counts.last(), Some(&(truth.len() as u64)));
    assert_eq!(caller.close(0).status, 200);
    assert_eq!(caller.session(0), "404");
    assert_eq!(caller.job_status(0, &id), "completed");
    assert_eq!(caller.fleet.violations(), Vec::<String>::new());
}

#[test]
fn the_results_are_the_truth_and_there_only_when_completed() {
    let mut caller = Caller::new();
    let id = caller.scraping(0, "mis_1:1");
    assert_eq!(caller.results(0, &id).status, 404);
    caller.wait(3600);
    let mut body = caller.results(0, &id).value().unwrap();
    let ads: Vec<Ad> = serde_json::from_value(body["ads"].take()).unwrap();
    assert_eq!(ads, caller.fleet.truth(&Filters::day(DAY, Format::All, "pt")));
    assert!(!ads.is_empty());
    assert_eq!(caller.results(1, &id).status, 404, "another worker has other results");
}

#[test]
fn a_completed_job_brings_its_ads_along_if_wished() {
    let mut caller = Caller::new();
    let config = lavra_world::FleetConfig { empty: 0.0, inline_data: true, ..Default::default() };
    caller.fleet = lavra_world::FleetWorld::new(config, 7);
    let id = caller.scraping(0, "mis_1:1");
    assert_eq!(caller.job(0, &id)["data"], json!([]));
    caller.wait(3600);
    let truth = caller.fleet.truth(&Filters::day(DAY, Format::All, "pt"));
    assert_eq!(caller.job(0, &id)["data"], json!(truth));
}

#[test]
fn a_mission_without_ads_comes_back_empty() {
    let mut caller = Caller::new();
    caller.fleet = lavra_world::FleetWorld::new(lavra_world::FleetConfig::default(), 7);
    let filters = (0..200).map(|day| Filters::day(DAY + day.days(), Format::Video, "pt"));
    let empty = filters.into_iter().find(|filters| caller.fleet.truth(filters).is_empty()).unwrap();
    caller.open(0, "a:1", None);
    caller.wait(90);
    let answer = caller.ask("POST", "/worker/0/scrape", None, Some(&scrape(&empty)));
    let id = answer.value().unwrap()["job_id"].as_str().unwrap().to_owned();
    caller.wait(3600);
    assert_eq!(caller.job(0, &id)["status"], "empty");
    assert_eq!(caller.results(0, &id).status, 404);
}

#[test]
fn the_same_key_is_the_same_job_and_the_same_session() {
    let mut caller = Caller::new();
    caller.open(0, "a:1", Some("ses_1"));
    caller.wait(90);
    caller.open(0, "a:1", Some("ses_1"));
    assert_eq!(caller.session(0), "ready", "the session was not begun again");
    let id = caller.started(0, "mis_1:1");
    caller.wait(60);
    assert_eq!(caller.started(0, "mis_1:1"), id);
    caller.open(0, "a:1", Some("ses_1"));
    assert_eq!(caller.session(0), "scraping");
    caller.wait(3600);
    assert_eq!(caller.started(0, "mis_1:1"), id, "also when it is over");
    assert_ne!(caller.started(0, "mis_1:2"), id);
    assert_eq!(caller.fleet.stats(caller.now).missions["mis_1"].starts, 2);
    assert_eq!(caller.fleet.violations(), Vec::<String>::new());
}

#[test]
fn a_new_session_ends_the_old_one_and_its_job() {
    let mut caller = Caller::new();
    let id = caller.scraping(0, "mis_1:1");
    caller.wait(30);
    caller.open(0, "b:1", None);
    assert_eq!(caller.session(0), "initializing");
    assert_eq!(caller.job_status(0, &id), "cancelled");
    let proxy = json!({ "proxy": { "server": "c:1" } });
    assert_eq!(caller.ask("POST", "/worker/0/session", None, Some(&proxy)).status, 200);
    let stats = caller.fleet.stats(caller.now);
    let behind = stats.workers[0].proxy.as_deref();
    assert_eq!(behind, Some("user@b:1"), "without force_refresh it is kept");
    assert_eq!(stats.sessions_opened, 2);
}

#[test]
fn a_cancelled_job_leaves_its_session_ready() {
    let mut caller = Caller::new();
    let id = caller.scraping(0, "mis_1:1");
    caller.wait(30);
    assert_eq!(caller.cancel(0, &id).status, 200);
    assert_eq!(caller.job_status(0, &id), "cancelled");
    assert_eq!(caller.session(0), "ready");
    assert_eq!(caller.cancel(0, &id).status, 200, "twice is once");
    assert_eq!(caller.cancel(0, "scrape_00000000").status, 404);
    caller.started(0, "mis_1:2");
}

#[test]
fn a_job_ends_with_its_session() {
    let mut caller = Caller::new();
    let id = caller.scraping(0, "mis_1:1");
    assert_eq!(caller.fleet.jobs_running(caller.now), 1);
    assert_eq!(caller.fleet.sessions_open(caller.now), 1);
    assert_eq!(caller.close(0).status, 200);
    assert_eq!(caller.job_status(0, &id), "cancelled");
    assert_eq!(caller.fleet.jobs_running(caller.now), 0);
    assert_eq!(caller.fleet.sessions_open(caller.now), 0);
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let caller = Caller::new();
    let post = |path: &str, body| caller.ask("POST", path, None, Some(&body)).status;
    assert_eq!(post("/worker/0/session", json!({ "force_refresh": true })), 422);
    assert_eq!(post("/worker/0/session", json!({ "proxy": {} })), 422);
    assert_eq!(caller.ask("POST", "/worker/0/session", None, None).status, 400);
    assert_eq!(post("/worker/0/scrape", json!({})), 422);
    let mut backwards = Filters::day(DAY, Format::All, "pt");
    backwards.end = DAY - 1.day();
    assert_eq!(post("/worker/0/scrape", scrape(&backwards)), 422);
    assert_eq!(post("/worker/99/session", json!({})), 404);
    assert_eq!(caller.ask("PUT", "/worker/0/session", None, None).status, 405);
    for key in [None, Some("worker-1-key")] {
        let request =
            FleetRequest { api_key: key, ..FleetRequest::new("GET", "/worker/0/session/status") };
        assert_eq!(caller.fleet.answer(caller.now, &request).status, 401);
    }
}

#[test]
fn the_same_questions_at_the_same_times_have_the_same_answers() {
    let day = || {
        let mut caller = Caller::with(|faults| *faults = lavra_world::FleetFaults::all());
        let mut answers = Vec::new();
        for round in 0..400 {
            let worker = round % 3;
            let key = format!("mis_{round}:1");
            answers.push(caller.open(worker, &format!("p{}:1", round % 7), Some(&key)));
            caller.wait(45);
            answers.push(caller.ask(
                "GET",
                &format!("/worker/{worker}/session/status"),
                None,
                None,
            ));
            let started = caller.start(worker, &key);
            let id = started.value().and_then(|body| Some(body["job_id"].as_str()?.to_owned()));
            answers.push(started);
            caller.wait(300);
            if let Some(id) = id {
                answers.push(caller.ask(
                    "GET",
                    &format!("/worker/{worker}/scrape/{id}"),
                    None,
                    None,
                ));
                answers.push(caller.results(worker, &id));
                let url = format!("http://fleet.test/worker/{worker}/{id}/{id}_results.json");
                answers.push(caller.process(Some(&id), &url));
                answers.push(caller.ask("GET", &format!("/writer/0/status/{id}"), None, None));
            }
        }
        (answers, caller.fleet.violations(), caller.fleet.stats(caller.now))
    };
    assert_eq!(day(), day());
}
