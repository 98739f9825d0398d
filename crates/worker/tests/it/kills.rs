//! Workers that are killed in the middle of a scrape, and started again.

use std::time::Duration;

use jiff::civil::date;
use lavra_fleet::api::{JobStatus, SessionStatus};

use crate::child::Process;
use crate::support::{World, files, mission};

#[tokio::test]
async fn a_worker_behind_each_kind_of_proxy_is_killed_and_its_job_ends_with_the_same_ads() {
    for kind in ["http", "socks5"] {
        let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
        let process = Process::start(&world, place.path());
        process.client.ready(&world, kind).await;
        world.faults(|faults| faults.latency_ms = 50);
        let mission = mission("mis_1", date(2025, 3, 3), 15, "all", &["pt", "en"]);
        let id = process.client.start(&mission).await;
        while process.client.job(&id).await.ads_count < Some(1000) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        process.kill();
        let process = Process::start(&world, place.path());
        assert_eq!(process.client.session().await, SessionStatus::Scraping);
        let job = process.client.job(&id).await;
        assert!(matches!(job.status, JobStatus::Queued | JobStatus::Running), "{job:?}");
        while process.client.job(&id).await.ads_count < Some(3000) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        process.kill();
        world.faults(|_| {});
        let process = Process::start(&world, place.path());
        let job = process.client.until_over(&id).await;
        let truth = world.truth(&mission);
        assert_eq!((job.status, job.ads_count), (JobStatus::Completed, Some(truth.len() as i32)));
        assert_eq!(process.client.ads(&id).await, truth);
        assert_eq!(process.client.start(&mission).await, id, "it was one start");
        assert_eq!(std::fs::read_dir(place.path().join("jobs")).unwrap().count(), 1);
        let meter = world.proxy.meter();
        let bytes: usize = truth.iter().map(|ad| ad.to_string().len()).sum();
        assert!(meter.bytes_down as usize > bytes && meter.denied == 0, "{meter:?}");
        assert_eq!(meter.socks > 0, kind == "socks5");
    }
}

#[tokio::test]
async fn results_are_whole_or_not_there_whenever_it_is_killed() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let mission = mission("mis_1", date(2025, 3, 3), 8, "all", &["pt"]);
    let truth = world.truth(&mission);
    let mut id = String::new();
    for wait in [0, 15, 40, 80, 130] {
        let process = Process::start(&world, place.path());
        if id.is_empty() {
            process.client.ready(&world, "http").await;
            id = process.client.start(&mission).await;
        }
        tokio::time::sleep(Duration::from_millis(wait)).await;
        process.kill();
        for (path, body) in files(&place.path().join("results")) {
            if path.extension().is_some_and(|end| end == "json") {
                let read: serde_json::Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(read["ads"].as_array(), Some(&truth));
            }
        }
    }
    let process = Process::start(&world, place.path());
    assert_eq!(process.client.until_over(&id).await.status, JobStatus::Completed);
    assert_eq!(process.client.ads(&id).await, truth);
}
