//! The examples do what the documents say of them.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::program::{Place, Running, until};

const SETTINGS: &str =
    "[fleet]\npolling_session_ms = 100\npolling_job_ms = 200\npolling_queue_ms = 500\n";

fn address() -> (String, String) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    (format!("127.0.0.1:{port}"), port.to_string())
}

/// A command with a secret, which must end well.
fn add(place: &Place, args: &[&str], secret: (&str, &str)) {
    let output = place.command(args).env(secret.0, secret.1).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_worker_in_python_scrapes_for_the_fleet() {
    let place = Place::on_duckdb();
    std::fs::write(place.directory.path().join("lavra.toml"), SETTINGS).unwrap();
    let ((ads, _), (_, proxy), (writer, _), (worker, port)) =
        (address(), address(), address(), address());
    let outside = ["world", "--listen", "127.0.0.1:0", "--ads", &ads, "--ads-per-day", "40"];
    let proxies = ["--proxies", "1", "--proxy-port", &proxy];
    let _world = place.start(&[&outside[..], &proxies].concat());
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let args = ["writer", "--target", "ads.duckdb", "--listen", &writer];
    let args = [&args[..], &["--allow-private", "127.0.0.0/8"]].concat();
    let _writer = place.start_with(&args, &[("LAVRA_WRITER_API_KEY", "writer-key")]);
    let python = std::env::var("LAVRA_TEST_PYTHON").expect("run it by cargo xtask test");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fleet_worker.py");
    let log = std::fs::File::create(place.directory.path().join("python.log")).unwrap();
    let _worker = Running(
        Command::new(python)
            .args([script, &format!("http://{ads}/v1"), &port])
            .env("WORKER_KEY", "worker-key")
            .current_dir(place.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap(),
    );
    for listening in [&ads, &writer, &worker] {
        let is_up = || std::net::TcpStream::connect(listening).ok();
        assert!(until(Duration::from_secs(20), is_up).is_some(), "{listening}: {}", place.logs());
    }

    let url = format!("http://{worker}");
    let args = ["fleet", "worker", "add", "mine", "--url", &url, "--storage-domain", &url];
    add(&place, &args, ("LAVRA_FLEET_API_KEY", "worker-key"));
    let args = ["fleet", "proxy", "add", "one", "--host", "127.0.0.1", "--port", &proxy];
    let args = [&args[..], &["--username", "user"]].concat();
    add(&place, &args, ("LAVRA_FLEET_PASSWORD", "proxy-password"));
    let args = ["fleet", "writer", "add", "one", "--url", &format!("http://{writer}")];
    add(&place, &args, ("LAVRA_FLEET_API_KEY", "writer-key"));
    let days = ["--from", "2025-01-01", "--to", "2025-01-04", "--language", "pt", "--queue"];
    place.json(&[&["mission", "add"], &days[..]].concat());
    let ran = place.run(&["fleet", "start", "--wait"]);
    assert!(ran.status.success(), "{}", place.logs());
    let rows = place.json(&[
        "sql",
        "SELECT count(*) AS missions, CAST(sum(ads_count) AS BIGINT) AS ads FROM public.missions
         WHERE status = 'completed'",
    ]);
    assert_eq!(rows[0]["missions"], 4, "{rows}: {}", place.logs());
    assert!(rows[0]["ads"].as_u64().unwrap() > 20, "{rows}");
}
