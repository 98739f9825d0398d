//! What a worker that is stopped leaves to the next one on its directory.

use std::time::{Duration, Instant};

use jiff::civil::date;
use lavra_fleet::api::{JobStatus, SessionStatus};
use lavra_fleet::code::ErrorCode;

use crate::support::{Rig, World, mission};

#[tokio::test]
async fn a_job_goes_on_after_a_restart_without_asking_again_for_what_it_has() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    rig.client.ready(&world, "socks5").await;
    world.faults(|faults| faults.latency_ms = 60);
    let mission = mission("mis_1", date(2025, 3, 3), 15, "all", &["pt", "en"]);
    let id = rig.client.start(&mission).await;
    while rig.client.job(&id).await.ads_count < Some(1500) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let data = rig.stop().await;
    world.faults(|_| {});

    let rig = Rig::new(&world, &data).await;
    assert_eq!(rig.client.start(&mission).await, id, "the same key is still the same job");
    let job = rig.client.until_over(&id).await;
    assert_eq!(job.status, JobStatus::Completed);
    assert_eq!(rig.client.session().await, SessionStatus::Ready);
    assert_eq!(rig.client.ads(&id).await, world.truth(&mission));
    let pages = world.library.stats().pages;
    let of_job = pages.iter().filter(|(query, _)| query.contains("languages=pt%2Cen"));
    let twice = of_job.clone().filter(|(_, times)| **times > 1).count();
    assert!(twice <= 4, "{twice} of {} pages were read twice", of_job.count());

    let data = rig.stop().await;
    let rig = Rig::new(&world, &data).await;
    assert_eq!(rig.client.job(&id).await.status, JobStatus::Completed, "what is over stays so");
    assert_eq!(rig.client.ads(&id).await.len(), world.truth(&mission).len());
    rig.client.until_session(&SessionStatus::Ready).await;
}

#[tokio::test]
async fn a_session_that_was_closed_is_not_opened_by_a_restart() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    rig.client.ready(&world, "http").await;
    rig.client.api().close().await;
    let data = rig.stop().await;
    let rig = Rig::new(&world, &data).await;
    assert_eq!(rig.client.raw_json("GET", "/session/status").await.0, 404);
}

#[tokio::test]
async fn a_job_whose_session_cannot_be_taken_up_again_has_failed() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    rig.client.ready(&world, "http").await;
    world.faults(|faults| faults.latency_ms = 60);
    let mission = mission("mis_1", date(2025, 3, 3), 15, "all", &["pt", "en"]);
    let id = rig.client.start(&mission).await;
    while rig.client.job(&id).await.ads_count < Some(500) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let data = rig.stop().await;
    // Another key: the sealed password is lost.
    std::fs::remove_file(data.join("worker.key")).unwrap();
    let rig = Rig::new(&world, &data).await;
    let job = rig.client.job(&id).await;
    assert_eq!((job.status, job.error_code), (JobStatus::Failed, Some(ErrorCode::Error100)));
    assert!(job.ads_count >= Some(500), "what it had found is told: {:?}", job.ads_count);
}

#[tokio::test]
async fn old_jobs_are_removed_with_their_results() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    rig.client.ready(&world, "http").await;
    let id = rig.client.start(&mission("mis_1", date(2025, 3, 3), 1, "video", &["pt"])).await;
    rig.client.until_over(&id).await;
    let data = rig.stop().await;
    let mut config = crate::support::config(&world, &data);
    config.timing.keep = Duration::ZERO;
    let rig = Rig::with(config).await;
    let begun = Instant::now();
    while rig.client.raw_json("GET", &format!("/scrape/{id}")).await.0 != 404
        || data.join("results").join(&id).exists()
        || data.join("jobs").join(&id).exists()
    {
        assert!(begun.elapsed() < Duration::from_secs(10), "it is still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
