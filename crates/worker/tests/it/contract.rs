//! The API to the letter of the specification, with the orchestrator's own client.

use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::date;
use lavra_fleet::api::{JobStatus, Reply, SessionStatus};
use serde_json::json;

use crate::support::{Rig, World, files, mission};

#[tokio::test]
async fn a_session_a_scrape_and_an_end_as_the_seed_has_them() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    assert_eq!(client.session().await, SessionStatus::Terminated, "there is none");
    client.ready(&world, "http").await;
    let mission = mission("mis_1", date(2025, 1, 15), 1, "video", &["pt"]);
    let id = client.start(&mission).await;
    assert!(id.starts_with("scrape_"));
    let job = client.until_over(&id).await;
    let truth = world.truth(&mission);
    assert_eq!((job.status, job.ads_count), (JobStatus::Completed, Some(truth.len() as i32)));
    assert_eq!(job.progress_pct, Some(100));
    assert_eq!(client.results(&id).await, json!({ "ads": truth }));
    assert_eq!(client.session().await, SessionStatus::Ready);
    assert_eq!(client.api().close().await, Reply::Done);
    assert_eq!(client.session().await, SessionStatus::Terminated);
    assert_eq!(client.api().close().await, Reply::Done, "404 is as good");
    assert_eq!(client.job(&id).await.status, JobStatus::Completed, "jobs outlive sessions");
    let (status, health) = client.raw_json("GET", "/health").await;
    assert_eq!((status, health), (200, json!({ "status": "healthy" })));
}

#[tokio::test]
async fn the_same_key_is_one_job_and_one_session() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.open(&world, "http", "ses_1").await;
    client.until_session(&SessionStatus::Ready).await;
    let before = world.proxy.meter().connections;
    assert_eq!(client.open(&world, "http", "ses_1").await, Reply::Done);
    assert_eq!(client.session().await, SessionStatus::Ready, "it was not opened again");
    assert_eq!(world.proxy.meter().connections, before);

    let mission = mission("mis_1", date(2025, 1, 15), 1, "video", &["pt"]);
    let (one, two) = tokio::join!(client.start(&mission), client.start(&mission));
    assert_eq!(one, two);
    client.until_over(&one).await;
    assert_eq!(client.start(&mission).await, one, "also when it is over");
    let mut other = mission.clone();
    other.languages = vec!["en".into()];
    assert!(matches!(client.api().start(&other).await, Reply::Trouble(_)), "another request");
    other.attempts = 2;
    assert_ne!(client.start(&other).await, one);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_is_gone_halfway_starts_no_second_job() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    for number in 0..20_u64 {
        let id = format!("mis_{number}");
        let mission = mission(&id, date(2025, 1, 15), 1, "video", &["pt"]);
        let patience = Duration::from_micros(200 * number);
        drop(tokio::time::timeout(patience, client.api().start(&mission)).await);
        client.until_over(&client.start(&mission).await).await;
    }
    let is_job = |path: &PathBuf| path.file_name().is_some_and(|name| name == "job.json");
    let jobs = files(place.path()).into_iter().filter(|(path, _)| is_job(path)).count();
    assert_eq!(jobs, 20);
}

#[tokio::test]
async fn a_session_has_one_job_at_a_time() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "socks5").await;
    world.faults(|faults| faults.latency_ms = 300);
    let one = mission("mis_1", date(2025, 1, 15), 3, "all", &["pt"]);
    let two = mission("mis_2", date(2025, 2, 15), 1, "video", &["pt"]);
    let id = client.start(&one).await;
    assert_eq!(client.api().start(&two).await, Reply::Session(SessionStatus::Scraping));
    let body =
        json!({ "filters": { "date_range": { "start": "2025-01-01", "end": "2025-01-01" } } });
    let answer = client.raw("POST", "/scrape").json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 422);
    client.api().close().await;
    assert_eq!(client.job(&id).await.status, JobStatus::Cancelled, "it ends with its session");
}

#[tokio::test]
async fn force_refresh_replaces_a_session_and_without_it_one_stays() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    client.ready(&world, "http").await;
    let server = world.proxy_at.to_string();
    let body = json!({ "proxy": { "server": server, "username": "x", "password": "y" } });
    let answer = client.raw("POST", "/session").json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(client.session().await, SessionStatus::Ready);
    let body = json!({ "force_refresh": true, "proxy": { "server": server, "username": "x", "password": "y" } });
    client.raw("POST", "/session").json(&body).send().await.unwrap();
    client.until_session(&SessionStatus::Disconnected).await;
}
