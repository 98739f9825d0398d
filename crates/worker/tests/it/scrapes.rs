//! What a scrape brings home, on good days and bad ones.

use std::collections::BTreeSet;

use jiff::civil::date;
use lavra_extract::source::Source;
use lavra_fleet::api::{JobStatus, SessionStatus};
use lavra_fleet::code::{Blame, ErrorCode};
use lavra_world::proxy::ProxyFaultKind;
use lavra_world::{AdLibrary, AdsConfig, ProxyFault};
use serde_json::{Value, json};

use crate::support::{Rig, World, config, files, mission};

#[tokio::test]
async fn every_filter_brings_the_world_s_truth_through_both_kinds_of_proxy() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    let mut number = 0;
    for kind in ["http", "socks5", "socks5h"] {
        client.ready(&world, kind).await;
        for (days, media, languages) in [
            (1, "video", &["pt"][..]),
            (1, "all", &["en", "es"]),
            (4, "image", &["pt", "en", "es"]),
        ] {
            number += 1;
            let before = world.proxy.meter();
            let mission =
                mission(&format!("mis_{number}"), date(2025, 3, 3), days, media, languages);
            let id = client.start(&mission).await;
            let job = client.until_over(&id).await;
            let truth = world.truth(&mission);
            assert_eq!(job.ads_count, Some(truth.len() as i32), "{kind} {media}: {job:?}");
            assert_eq!(client.ads(&id).await, truth, "{kind} {media}");
            let bytes: usize = truth.iter().map(|ad| ad.to_string().len()).sum();
            let passed = world.proxy.meter().bytes_down - before.bytes_down;
            assert!(passed >= bytes as u64, "{passed} of {bytes} bytes went through the proxy");
        }
    }
    let meter = world.proxy.meter();
    assert!(meter.http_requests > 10 && meter.socks > 1 && meter.denied == 0, "{meter:?}");
}

#[tokio::test]
async fn bad_days_of_the_library_change_nothing_in_the_results() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let mut config = config(&world, place.path());
    config.timing.attempts = 12;
    let rig = Rig::with(config).await;
    let client = &rig.client;
    client.ready(&world, "socks5h").await;
    world.faults(|faults| {
        (faults.too_many, faults.server_error, faults.cut) = (0.05, 0.1, 0.1);
        (faults.html, faults.zero_length, faults.reset) = (0.05, 0.05, 0.1);
    });
    let mission = mission("mis_1", date(2025, 3, 3), 6, "all", &["pt", "en"]);
    let id = client.start(&mission).await;
    assert_eq!(client.until_over(&id).await.status, JobStatus::Completed);
    assert_eq!(client.ads(&id).await, world.truth(&mission));
    assert!(world.library.stats().statuses.len() > 3, "nothing went wrong");
}

#[tokio::test]
async fn an_announced_total_that_moves_is_read_anew() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    let asked = world.library.stats().requests;
    world.faults(|faults| faults.one_more_after = Some(asked + 3));
    let mission = mission("mis_1", date(2025, 3, 3), 4, "all", &["pt"]);
    let id = client.start(&mission).await;
    assert_eq!(client.until_over(&id).await.status, JobStatus::Completed);
    let ads = client.ads(&id).await;
    let ids: BTreeSet<&str> = ads.iter().map(|ad| ad["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), world.truth(&mission).len() + 1);
    assert!(ids.contains("ad_late_0"));
}

#[tokio::test]
async fn a_list_that_lies_about_its_end_fails_instead_of_being_short() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    world.faults(|faults| faults.empty = 0.5);
    let mission = mission("mis_1", date(2025, 3, 3), 12, "all", &["pt", "en"]);
    let id = client.start(&mission).await;
    let job = client.until_over(&id).await;
    match job.status {
        JobStatus::Failed => assert_eq!(job.error_code, Some(ErrorCode::Error200)),
        // Page 1 itself said that there is nothing: nobody can know better.
        JobStatus::Empty => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn max_ads_takes_the_first_and_asks_for_no_more_pages_than_needed() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    let mission = mission("mis_1", date(2025, 3, 3), 4, "all", &["pt"]);
    let truth = world.truth(&mission);
    assert!(truth.len() > 400);
    for (most, pages) in [(70, 2), (1, 1), (100, 2), (101, 3)] {
        let asked = world.library.stats().requests;
        let body = json!({
            "filters": {
                "date_range": { "start": "2025-03-03", "end": "2025-03-06" }, "format": "all",
                "sort_by": "qtd_ads", "languages": ["pt"],
            },
            "options": { "max_ads": most, "batch_size": 50 },
        });
        let answer = client.raw("POST", "/scrape").json(&body).send().await.unwrap();
        let started: Value = answer.json().await.unwrap();
        let id = started["job_id"].as_str().unwrap();
        client.until_over(id).await;
        assert_eq!(client.ads(id).await, truth[..most]);
        assert_eq!(world.library.stats().requests - asked, pages, "{most}");
        let (_, job) = client.raw_json("GET", &format!("/scrape/{id}")).await;
        let data = (most <= 100).then(|| json!(truth[..most]));
        assert_eq!(job.get("data"), data.as_ref(), "data is left out above 100 ads");
    }
}

#[tokio::test]
async fn nothing_to_be_found_is_empty_and_has_no_results() {
    let (mut world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let nothing = AdLibrary::new(AdsConfig { ads: 0, ..AdsConfig::default() });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        nothing.serve(listener, tokio_util::sync::CancellationToken::new()).await
    });
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    let id = client.start(&mission("mis_1", date(2025, 3, 3), 1, "video", &["pt"])).await;
    let job = client.until_over(&id).await;
    assert_eq!((job.status, job.ads_count), (JobStatus::Empty, Some(0)));
    let (_, body) = client.raw_json("GET", &format!("/scrape/{id}")).await;
    assert_eq!(body["data"], json!([]));
    assert_eq!(client.raw_json("GET", &format!("/{id}/{id}_results.json")).await.0, 404);
    assert_eq!(client.session().await, SessionStatus::Ready);
}

#[tokio::test]
async fn progress_is_told_and_a_cancel_stops_the_requests() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "socks5").await;
    world.faults(|faults| faults.latency_ms = 60);
    let mission = mission("mis_1", date(2025, 3, 3), 30, "all", &["pt", "en", "es"]);
    let id = client.start(&mission).await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|count| *count < 1000) {
        let job = client.job(&id).await;
        assert!(matches!(job.status, JobStatus::Pending | JobStatus::Running), "{job:?}");
        seen.push(job.ads_count.unwrap());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(seen.is_sorted(), "{seen:?}");
    let (_, job) = client.raw_json("GET", &format!("/scrape/{id}")).await;
    let percent = job["progress_pct"].as_i64().unwrap();
    assert!((1..99).contains(&percent), "{job}");
    assert_eq!(job["total"], world.truth(&mission).len());
    assert_eq!(client.session().await, SessionStatus::Scraping);
    client.api().cancel(&id).await;
    let cancelled = client.job(&id).await;
    assert_eq!(cancelled.status, JobStatus::Cancelled);
    assert!(cancelled.ads_count >= seen.last().copied(), "{cancelled:?}");
    assert_eq!(client.session().await, SessionStatus::Ready);
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    let asked = world.library.stats().requests;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(world.library.stats().requests, asked);
    client.api().cancel(&id).await;
    assert_eq!(client.raw_json("GET", &format!("/{id}/{id}_results.json")).await.0, 404);
    let data = rig.stop().await;
    let rig = Rig::new(&world, &data).await;
    assert_eq!(
        rig.client.job(&id).await.ads_count,
        cancelled.ads_count,
        "also for the next worker"
    );
}

/// A job that is cancelled while its beginning is written down stays cancelled, also for the next worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_right_after_the_start_is_kept() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    world.faults(|faults| faults.latency_ms = 100);
    for round in 0..60 {
        let mission = mission(&format!("mis_{round}"), date(2025, 3, 3), 5, "all", &["pt"]);
        let id = client.start(&mission).await;
        tokio::time::sleep(std::time::Duration::from_micros(50 * round)).await;
        client.api().cancel(&id).await;
        assert_eq!(client.job(&id).await.status, JobStatus::Cancelled);
        assert_eq!(client.session().await, SessionStatus::Ready);
    }
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    for (path, body) in files(&place.path().join("jobs")) {
        let job: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(job["status"], "cancelled", "{}", path.display());
    }
}

#[tokio::test]
async fn a_proxy_that_fails_in_the_middle_breaks_the_session_and_says_who_is_to_blame() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    let kinds = [
        (ProxyFaultKind::Deny, SessionStatus::Disconnected, ErrorCode::Error103),
        (ProxyFaultKind::Reset, SessionStatus::Disconnected, ErrorCode::Error103),
        (ProxyFaultKind::Cut { bytes: 5000 }, SessionStatus::Disconnected, ErrorCode::Error103),
        (ProxyFaultKind::Hang, SessionStatus::Stuck, ErrorCode::Error102),
    ];
    for (number, (kind, session, code)) in kinds.into_iter().enumerate() {
        world.proxy.set_fault(None);
        client.ready(&world, "http").await;
        let after = world.proxy.meter().connections + 2;
        world.proxy.set_fault(Some(ProxyFault { kind, after }));
        let mission = mission(&format!("mis_{number}"), date(2025, 3, 3), 6, "all", &["pt", "en"]);
        let job = client.until_over(&client.start(&mission).await).await;
        assert_eq!(job.status, JobStatus::Failed, "{kind:?}");
        assert_eq!((job.error_code, job.blame), (Some(code), Some(Blame::Proxy)), "{kind:?}");
        assert_eq!(client.session().await, session, "{kind:?}");
    }
}

#[tokio::test]
async fn a_source_that_fails_is_not_the_proxy_s_fault() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    world.faults(|faults| faults.server_error = 1.0);
    let id = client.start(&mission("mis_1", date(2025, 3, 3), 1, "all", &["pt"])).await;
    let job = client.until_over(&id).await;
    assert_eq!((job.status, job.error_code), (JobStatus::Failed, Some(ErrorCode::Error200)));
    assert_eq!(job.blame, Some(Blame::Nobody));
    assert_eq!(client.session().await, SessionStatus::Ready, "another job may go better");
}

#[tokio::test]
async fn any_paged_source_can_be_scraped() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let text = format!(
        "name = \"own\"\nbase_url = {:?}\n[request]\nfrom = \"date_start\"\nto = \"date_end\"\n\
         page = \"page\"\npage_size = \"page_size\"\n[response]\nrecords = \"/ads\"\n\
         total = \"/paging/total\"\n[filters]\nignore = [\"media_type\", \"sort_by\"]\n\
         [[endpoint]]\nname = \"items\"\npath = \"/ads\"\nfirst_month = \"2024-01\"\n\
         page_size = 100\nfan_out = {{ parameter = \"languages\", label = \"language\", values = [\"pt\", \"en\"] }}\n",
        world.base_url
    );
    let mut config = config(&world, place.path());
    config.source = Source::parse(&text).unwrap();
    let rig = Rig::with(config).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    let all = mission("mis_1", date(2025, 3, 3), 2, "all", &["pt", "en"]);
    let mut order = all.clone();
    order.languages.clear();
    let id = client.start(&order).await;
    assert_eq!(client.until_over(&id).await.status, JobStatus::Completed);
    let ids = |ads: &[Value]| ads.iter().map(|ad| ad["id"].to_string()).collect::<BTreeSet<_>>();
    assert_eq!(ids(&client.ads(&id).await), ids(&world.truth(&all)));
}
