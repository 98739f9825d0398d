//! Keys and passwords: nowhere but where they are needed.

use std::io::Write;
use std::sync::{Arc, Mutex};

use jiff::civil::date;
use lavra_fleet::api::SessionStatus;
use lavra_world::proxy::ProxyFaultKind;
use serde_json::json;

use crate::support::{KEY, PASSWORD, Rig, USER, World, files, mission};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What the secrets look like, also to whoever encodes them.
fn marks() -> Vec<String> {
    let escaped = PASSWORD.replace('@', "%40").replace(':', "%3A").replace('/', "%2F");
    // The middle of base64(user:password), whatever stands around it.
    let encoded = "bWFya2VyLXBAc3M6";
    assert_eq!((USER, &PASSWORD[..12]), ("maria", "marker-p@ss:"));
    vec![KEY.into(), PASSWORD.into(), escaped, encoded.into(), "wrong-marker-4411".into()]
}

#[tokio::test]
async fn no_secret_is_in_a_log_an_answer_or_a_file() {
    let log = Log::default();
    let writer = log.clone();
    let _only_the_first_counts = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .try_init();
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    let mut answers = Vec::new();
    for kind in ["http", "socks5"] {
        client.ready(&world, kind).await;
        world.faults(|faults| faults.server_error = 0.2);
        let mission = mission(&format!("mis_{kind}"), date(2025, 3, 3), 3, "all", &["pt"]);
        let id = client.start(&mission).await;
        client.until_over(&id).await;
        answers.push(client.raw_json("GET", &format!("/scrape/{id}")).await.1.to_string());
        world.faults(|_| {});
        for fault in [ProxyFaultKind::Deny, ProxyFaultKind::Reset, ProxyFaultKind::Refuse] {
            world.fail(fault);
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            client.open(&world, kind, &format!("{kind}{fault:?}")).await;
            client.until_session(&SessionStatus::Disconnected).await;
            answers.push(client.raw_json("GET", "/session/status").await.1.to_string());
            world.proxy.set_fault(None);
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    }
    let proxy = json!({ "server": "x y", "username": USER, "password": PASSWORD });
    for body in [
        format!("{{\"proxy\": {{\"password\": \"{PASSWORD}\" oh"),
        json!({ "proxy": proxy }).to_string(),
        json!({ "proxy": { "server": format!("http://{USER}:{PASSWORD}@x:1") } }).to_string(),
        json!({ "proxy": { "server": "x:1", "password": [PASSWORD] } }).to_string(),
    ] {
        let answer = client.raw("POST", "/session").body(body).send().await.unwrap();
        assert!(answer.status().is_client_error());
        answers.push(answer.text().await.unwrap());
    }
    let wrong = client.raw("GET", "/session/status").header("x-api-key", "wrong-marker-4411");
    answers.push(wrong.send().await.unwrap().text().await.unwrap());
    answers.push(format!("{:?}", rig.worker));
    client.ready(&world, "socks5h").await;

    let told = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(told.contains("a session is opened"), "there is a log");
    let kept = files(place.path());
    assert!(kept.iter().any(|(path, _)| path.ends_with("session.json")));
    for mark in marks() {
        if let Some(line) = told.lines().find(|line| line.contains(&mark)) {
            panic!("in the log: {line}");
        }
        assert!(answers.iter().all(|answer| !answer.contains(&mark)), "{answers:?}");
        for (path, body) in &kept {
            let has = body.windows(mark.len()).any(|part| part == mark.as_bytes());
            assert!(!has, "{}", path.display());
        }
    }
    let key = std::fs::metadata(place.path().join("worker.key")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&key) & 0o077, 0, "for the owner alone");
}
