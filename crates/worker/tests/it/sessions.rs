//! The nine statuses, each as it really occurs.

use std::time::Duration;

use jiff::civil::date;
use lavra_fleet::api::SessionStatus as Status;
use lavra_world::proxy::ProxyFaultKind;

use crate::support::{Rig, World, config, mission, proxy};

#[tokio::test]
async fn a_session_goes_through_its_statuses_to_ready_and_scraping() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    // Slow enough for each step to be seen.
    world.faults(|faults| faults.latency_ms = 200);
    for kind in ["http", "socks5"] {
        client.open(&world, kind, kind).await;
        let seen = client.until_session(&Status::Ready).await;
        let order = [
            Status::Initializing,
            Status::Connecting,
            Status::Authenticating,
            Status::WarmingUp,
            Status::Ready,
        ];
        assert!(seen.iter().all(|status| order.contains(status)), "{seen:?}");
        assert!(seen.ends_with(&order[2..]), "{seen:?}");
        let mission = mission(&format!("mis_{kind}"), date(2025, 1, 15), 3, "all", &["pt"]);
        let id = client.start(&mission).await;
        assert_eq!(client.session().await, Status::Scraping);
        client.until_over(&id).await;
        assert_eq!(client.session().await, Status::Ready);
    }
}

/// The first two pass in a moment; a proxy whose name nobody knows how to find holds them up.
#[tokio::test]
async fn a_proxy_that_is_being_reached_is_connecting() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    let listener = tokio::net::TcpSocket::new_v4().unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // A backlog that is full: further connections are not answered.
    let full = listener.listen(1).unwrap();
    let at = full.local_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        let connect = tokio::net::TcpStream::connect(at);
        held.push(tokio::time::timeout(Duration::from_millis(100), connect).await);
    }
    let mut silent = proxy(&world, "http");
    silent.port = Some(i32::from(at.port()));
    client.open_with(&silent, "x", "ses_1").await;
    let seen = client.until_session(&Status::Connecting).await;
    assert!(
        seen.iter().all(|it| matches!(it, Status::Initializing | Status::Connecting)),
        "{seen:?}"
    );
    client.until_session(&Status::Stuck).await;
}

#[tokio::test]
async fn a_proxy_that_refuses_or_denies_is_disconnected() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    for kind in ["http", "socks5", "socks5h"] {
        for fault in [ProxyFaultKind::Refuse, ProxyFaultKind::Reset, ProxyFaultKind::Deny] {
            world.fail(fault);
            tokio::time::sleep(Duration::from_millis(30)).await;
            client.open(&world, kind, &format!("{kind} {fault:?}")).await;
            client.until_session(&Status::Disconnected).await;
            let (_, body) = client.raw_json("GET", "/session/status").await;
            assert_eq!(
                (&body["error_code"], &body["blame"]),
                (&"ERROR103".into(), &"proxy".into())
            );
            assert!(body["error_message"].as_str().unwrap().contains("proxy"), "{body}");
        }
        world.proxy.set_fault(None);
        tokio::time::sleep(Duration::from_millis(30)).await;
        client.open_with(&proxy(&world, kind), "wrong", &format!("{kind} wrong")).await;
        client.until_session(&Status::Disconnected).await;
    }
}

#[tokio::test]
async fn a_proxy_that_hangs_and_a_source_that_blocks_are_stuck() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    world.fail(ProxyFaultKind::Hang);
    client.open(&world, "http", "hangs").await;
    client.until_session(&Status::Stuck).await;
    world.proxy.set_fault(None);
    world.faults(|faults| faults.blocked = 1.0);
    client.open(&world, "socks5", "blocked").await;
    client.until_session(&Status::Stuck).await;
    let (_, body) = client.raw_json("GET", "/session/status").await;
    assert_eq!((&body["error_code"], &body["blame"]), (&"ERROR102".into(), &"proxy".into()));
    assert!(body["error_message"].as_str().unwrap().contains("403"), "{body}");
    world.faults(|faults| faults.server_error = 1.0);
    client.open(&world, "http", "ill").await;
    client.until_session(&Status::Stuck).await;
}

#[tokio::test]
async fn a_web_server_that_is_no_proxy_is_nobodys_fault_and_no_mission_s() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut none = proxy(&world, "http");
    none.port = Some(i32::from(listener.local_addr().unwrap().port()));
    let nothing = axum::Router::new().fallback(async || axum::http::StatusCode::BAD_REQUEST);
    let server = tokio::spawn(async move { axum::serve(listener, nothing).await });
    rig.client.open_with(&none, "x", "ses_1").await;
    rig.client.until_session(&Status::Stuck).await;
    let (_, body) = rig.client.raw_json("GET", "/session/status").await;
    assert_eq!((&body["error_code"], &body["blame"]), (&"ERROR102".into(), &"nobody".into()));
    assert!(body["error_message"].as_str().unwrap().contains("the proxy is none"), "{body}");
    server.abort();
}

#[tokio::test]
async fn a_session_that_is_ready_again_has_no_error_of_a_job() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    rig.client.ready(&world, "http").await;
    world.faults(|faults| faults.server_error = 1.0);
    let id = rig.client.start(&mission("mis_1", date(2025, 3, 3), 1, "all", &["pt"])).await;
    let job = rig.client.until_over(&id).await;
    assert!(job.error_code.is_some(), "{job:?}");
    let (_, body) = rig.client.raw_json("GET", "/session/status").await;
    assert_eq!(body, serde_json::json!({ "status": "ready" }));
}

#[tokio::test]
async fn a_session_that_is_never_ready_is_stuck_in_time() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let mut config = config(&world, place.path());
    config.timing.session = Duration::from_millis(300);
    let rig = Rig::with(config).await;
    world.faults(|faults| faults.latency_ms = 200);
    rig.client.open(&world, "http", "slow").await;
    rig.client.until_session(&Status::Stuck).await;
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends_by_itself() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let mut config = config(&world, place.path());
    config.timing.idle = Duration::from_millis(400);
    let rig = Rig::with(config).await;
    rig.client.ready(&world, "http").await;
    // Not asked meanwhile: to ask is to use it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (status, body) = rig.client.raw_json("GET", "/session/status").await;
    assert_eq!((status, &body["status"]), (200, &"terminated".into()));
    let data = rig.stop().await;
    let rig = Rig::new(&world, &data).await;
    assert_eq!(rig.client.raw_json("GET", "/session/status").await.0, 404, "it stays ended");
}
