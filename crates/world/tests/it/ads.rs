//! The ad library, over real sockets.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::civil::date;
use lavra_world::fleet::{Filters, Format};
use lavra_world::{AdFaults, AdLibrary, AdsConfig};
use reqwest::{Client, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) struct Served {
    pub(crate) library: AdLibrary,
    pub(crate) base: String,
    http: Client,
    _stop: DropGuard,
}

const DAY: &str = "date_start=2025-01-15&date_end=2025-01-16&media_type=video&languages=pt,en";

pub(crate) fn filters() -> Filters {
    Filters {
        start: date(2025, 1, 15),
        end: date(2025, 1, 16),
        format: Format::Video,
        languages: vec!["pt".into(), "en".into()],
    }
}

impl Served {
    pub(crate) async fn new() -> Self {
        let library = AdLibrary::new(AdsConfig { seed: 7, empty: 0.0, ..AdsConfig::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let (served, until) = (library.clone(), stop.clone());
        tokio::spawn(async move { served.serve(listener, until).await });
        let _once = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().no_proxy().build().unwrap();
        Self { library, base, http, _stop: stop.drop_guard() }
    }

    async fn get(&self, target: &str) -> Value {
        let answer = self.http.get(format!("{}{target}", self.base)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{target}");
        answer.json().await.unwrap()
    }

    async fn status(&self, query: &str) -> u16 {
        let url = format!("{}/v1/ads?{query}", self.base);
        self.http.get(url).send().await.unwrap().status().as_u16()
    }

    fn set(&self, change: impl FnOnce(&mut AdFaults)) {
        let mut faults = AdFaults::default();
        change(&mut faults);
        self.library.set_faults(faults).unwrap();
    }
}

#[tokio::test]
async fn the_pages_together_are_the_truth_and_their_totals_are_right() {
    let served = Served::new().await;
    let truth = served.library.truth(&filters());
    let mut read = Vec::new();
    for page in 1.. {
        let body = served.get(&format!("/v1/ads?{DAY}&page={page}&page_size=150")).await;
        assert_eq!(body["paging"]["total"], truth.len());
        let ads = body["ads"].as_array().unwrap();
        read.extend(ads.iter().cloned());
        if body["paging"]["pages"] == page {
            break;
        }
        assert_eq!(ads.len(), 150);
    }
    assert!(read.len() > 300 && read == truth, "{} and {}", read.len(), truth.len());
    let told = served.get(&format!("/_world/ads?{DAY}")).await;
    assert_eq!(told["ads"].as_array(), Some(&truth));
    assert_eq!(served.library.total(&filters()), truth.len() as u64);
}

#[tokio::test]
async fn a_cursor_leads_through_the_same_pages() {
    let served = Served::new().await;
    let (mut ids, mut more) = (Vec::new(), String::new());
    loop {
        let body = served.get(&format!("/v1/ads?{DAY}&page_size=100{more}")).await;
        ids.extend(body["ads"].as_array().unwrap().iter().map(|ad| ad["id"].clone()));
        match body["paging"]["next_cursor"].as_str() {
            Some(cursor) => more = format!("&cursor={cursor}"),
            None => break,
        }
    }
    let truth: Vec<Value> =
        served.library.truth(&filters()).iter().map(|ad| ad["id"].clone()).collect();
    assert_eq!(ids, truth);
}

#[tokio::test]
async fn filters_leave_out_what_does_not_fit() {
    let served = Served::new().await;
    let truth = served.library.truth(&filters());
    assert!(truth.iter().all(|ad| ad["media_type"] == "video"));
    let languages: BTreeSet<&str> =
        truth.iter().map(|ad| ad["languages"][0].as_str().unwrap()).collect();
    assert_eq!(languages, BTreeSet::from(["en", "pt"]));
    for wrong in ["", "date_start=2025-01-15", "date_start=x&date_end=y"] {
        assert_eq!(served.status(wrong).await, 400);
    }
    assert_eq!(served.status(&format!("{DAY}&page_size=501")).await, 400);
}

#[tokio::test]
async fn each_switch_does_what_it_says() {
    let served = Served::new().await;
    let url = format!("{}/v1/ads?{DAY}", served.base);
    let ask = || served.http.get(&url).timeout(Duration::from_millis(700)).send();
    served.set(|faults| {
        faults.too_many = 1.0;
        faults.retry_after_seconds = Some(3);
    });
    let answer = ask().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (429, &"3".parse().unwrap())
    );
    served.set(|faults| faults.server_error = 1.0);
    assert_eq!(ask().await.unwrap().status(), 500);
    served.set(|faults| faults.blocked = 1.0);
    assert_eq!(ask().await.unwrap().status(), 403);
    served.set(|faults| faults.html = 1.0);
    assert!(ask().await.unwrap().text().await.unwrap().starts_with("<html>"));
    served.set(|faults| faults.zero_length = 1.0);
    assert_eq!(ask().await.unwrap().text().await.unwrap(), "");
    served.set(|faults| faults.empty = 1.0);
    let body: Value = ask().await.unwrap().json().await.unwrap();
    assert_eq!(body["paging"]["total"], 0);
    served.set(|faults| faults.cut = 1.0);
    assert!(ask().await.unwrap().bytes().await.is_err());
    served.set(|faults| faults.reset = 1.0);
    assert!(ask().await.is_err());
    served.set(|faults| {
        faults.hang = 1.0;
        faults.hang_ms = 60_000;
    });
    assert!(ask().await.unwrap_err().is_timeout());
    served.set(|faults| faults.latency_ms = 200);
    let begun = Instant::now();
    assert_eq!(ask().await.unwrap().status(), 200);
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let asked = served.library.stats().requests;
    served.set(|faults| faults.one_more_after = Some(asked));
    let body: Value = ask().await.unwrap().json().await.unwrap();
    assert_eq!(body["paging"]["total"], served.library.total(&filters()) + 1);
    let mut wrong = AdFaults { cut: 0.6, ..AdFaults::default() };
    wrong.reset = 0.6;
    assert!(served.library.set_faults(wrong).is_err());
}

#[tokio::test]
async fn switches_are_turned_and_stats_are_told_over_http() {
    let served = Served::new().await;
    let url = format!("{}/_world/faults", served.base);
    let body = serde_json::json!({ "server_error": 1.0 });
    let answer = served.http.put(&url).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(served.status(DAY).await, 500);
    let answer = served.http.put(&url).json(&serde_json::json!({ "no": 1 })).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    served.set(|_| {});
    assert_eq!(served.status(DAY).await, 200);
    let stats = served.get("/_world/stats").await;
    assert_eq!((&stats["requests"], &stats["statuses"]["500"]), (&2.into(), &1.into()));
    assert_eq!(stats["pages"][DAY], 1);
}
