//! `lavra key …`, and a server that others than this machine may reach.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::program::{Place, Running};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A new key, as the shell gets it.
fn create(place: &Place, args: &[&str]) -> String {
    let output = place.run(&[&["key", "create"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let data = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(data.lines().count(), 1, "more than the key is on stdout: {data}");
    assert!(said(&output).contains("shown this once"), "{}", said(&output));
    data.trim().to_owned()
}

#[test]
fn a_key_is_printed_once_listed_and_revoked() {
    for place in [Place::on_duckdb(), Place::on_postgres(), Place::behind_pgbouncer()] {
        let key = create(&place, &["grafana", "--role", "viewer", "--expires", "90d"]);
        let (id, secret) = key.strip_prefix("lavra_").unwrap().split_once('_').unwrap();
        let list = place.run(&["key", "list"]);
        let text = String::from_utf8_lossy(&list.stdout).into_owned();
        for part in [id, "grafana", "viewer", "valid"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains(secret) && !said(&list).contains(secret), "{text}");
        let listed = &place.json(&["key", "list"])["items"][0];
        let time = |name: &str| listed[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let life = time("expires_at").duration_since(time("created_at"));
        assert_eq!(life.as_hours(), 90 * 24);
        assert_eq!(place.json(&["key", "revoke", id])["standing"], "revoked");
        assert_eq!(place.json(&["key", "list"])["items"][0]["standing"], "revoked");
        let made = place.json(&["key", "create", "ci", "--role", "writer"]);
        assert!(made["key"].as_str().unwrap().starts_with("lavra_"), "{made}");
    }
}

#[test]
fn mistakes_with_keys_are_said() {
    let place = Place::on_duckdb();
    for (args, code, says) in [
        (&["key", "create", "a"][..], 2, "--role"),
        (&["key", "create", "a", "--role", "root"], 2, "operator"),
        (&["key", "create", "a", "--role", "viewer", "--expires", "soon"], 2, "90d or 12h"),
        (&["key", "create", "", "--role", "viewer"], 1, "name"),
        (&["key", "revoke", "nobody00"], 1, "error[key_not_found]"),
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", said(&output));
        assert!(said(&output).contains(says), "{args:?}: {}", said(&output));
    }
}

/// Where the holder of the file serves it, as its lock says.
fn served_at(place: &Place, server: &Running) -> String {
    place.until_served(server);
    let lock = std::fs::read(place.directory.path().join("lavra.duckdb.lock")).unwrap();
    let lock: Value = serde_json::from_slice(&lock).unwrap();
    lock["url"].as_str().unwrap().to_owned()
}

#[test]
fn a_server_that_needs_keys_takes_them_from_the_environment() {
    let place = Place::on_duckdb();
    let file = place.directory.path().join("lavra.toml");
    std::fs::write(file, "[web]\nrequire_key = true\n").unwrap();
    let viewer = create(&place, &["eve", "--role", "viewer"]);
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    let url = served_at(&place, &server);
    let ask = |key: &str, args: &[&str]| {
        let args = [&["--server", &url], args].concat();
        place.command(&args).env("LAVRA_API_KEY", key).output().unwrap()
    };
    let refused = ask("", &["task", "list"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("error[unauthenticated]"), "{}", said(&refused));
    let (kept, last) = viewer.split_at(viewer.len() - 1);
    let wrong = format!("{kept}{}", if last == "z" { "y" } else { "z" });
    let refused = ask(&wrong, &["task", "list"]);
    assert!(said(&refused).contains("error[unauthenticated]"), "{}", said(&refused));
    assert!(!said(&refused).contains(&wrong), "the key is repeated: {}", said(&refused));
    assert_eq!(ask("a\nb", &["task", "list"]).status.code(), Some(2));
    assert_eq!(ask(&viewer, &["task", "list"]).status.code(), Some(0));
    let refused = ask(&viewer, &["key", "list"]);
    assert!(said(&refused).contains("error[role_needed]"), "{}", said(&refused));
    // Who runs it shows the lock file's token, and needs no key.
    assert_eq!(place.json(&["key", "list"])["items"][0]["name"], "eve");
    assert!(!place.logs().contains(&viewer), "{}", place.logs());
}

#[test]
fn where_callers_need_keys_tasks_stay_out_of_the_inside() {
    for (flags, is_refused) in [(&[][..], true), (&["--allow-private"][..], false)] {
        let place = Place::on_duckdb();
        let file = place.directory.path().join("lavra.toml");
        std::fs::write(file, "[web]\nrequire_key = true\n").unwrap();
        let server = place.start(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat());
        place.until_served(&server);
        let payload = r#"{"url": "http://127.0.0.1:1/"}"#;
        let args = ["task", "create", "http", "--payload", payload, "--max-retries", "0"];
        let id = place.json(&args)["id"].as_str().unwrap().to_owned();
        let task = place.until(&id, Duration::from_secs(20), |task| task["status"] == "FAILED");
        let events = place.json(&["task", "events", &id]).to_string();
        assert_eq!(events.contains("an internal address"), is_refused, "{task} {events}");
    }
}

/// A network of its own, where a listener on all addresses is reached by nobody else.
const ALONE: &str = "
import fcntl, os, socket, struct, sys
UP, SIOCSIFFLAGS = 0x41, 0x8914
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack('16sh14x', b'lo', UP))
os.execv(sys.argv[1], sys.argv[1:])
";

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn in_a_network_of_its_own(inner: &Command) -> Command {
    let python = std::env::var("LAVRA_TEST_PYTHON")
        .expect("LAVRA_TEST_PYTHON is not set: run it by cargo xtask test");
    let mut command = Command::new("unshare");
    command
        .args(if is_root() { &["--net"][..] } else { &["--map-root-user", "--net"] })
        .args([&python, "-c", ALONE])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(inner.get_current_dir().unwrap())
        .stdin(Stdio::null());
    command
}

fn in_the_network_of(server: &Running, inner: &Command) -> Command {
    let mut command = Command::new("nsenter");
    command
        .args(["--target", &server.0.id().to_string(), "--net"])
        .args(if is_root() { &[][..] } else { &["--user", "--preserve-credentials"] })
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(inner.get_current_dir().unwrap())
        .stdin(Stdio::null());
    command
}

#[test]
fn beyond_this_machine_it_serves_only_with_an_admin_key_and_then_everyone_needs_one() {
    let place = Place::on_duckdb();
    let serve = ["serve", "--listen", "0.0.0.0:0"];
    let refused = || {
        let output = in_a_network_of_its_own(&place.command(&serve)).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("lavra key create NAME --role admin"), "{}", said(&output));
    };
    refused();
    create(&place, &["a", "--role", "operator"]);
    refused();
    let gone = create(&place, &["b", "--role", "admin"]);
    let (id, _) = gone.strip_prefix("lavra_").unwrap().split_once('_').unwrap();
    place.json(&["key", "revoke", id]);
    refused();

    let admin = create(&place, &["c", "--role", "admin"]);
    let log = std::fs::File::create(place.directory.path().join("server.log")).unwrap();
    let mut command = in_a_network_of_its_own(&place.command(&serve));
    let server = Running(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    let url = served_at(&place, &server);
    assert!(url.starts_with("http://127.0.0.1:"), "nobody can call {url}");
    let ask = |key: &str, args: &[&str]| {
        let mut command = in_the_network_of(&server, &place.command(args));
        command.env("LAVRA_API_KEY", key).output().unwrap()
    };
    let list = ["--server", &url, "task", "list"];
    let output = ask("", &list);
    assert!(said(&output).contains("error[unauthenticated]"), "{}", said(&output));
    let output = ask(&gone, &list);
    assert!(said(&output).contains("error[unauthenticated]"), "{}", said(&output));
    let output = ask(&admin, &["--server", &url, "key", "list"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = ask("", &["task", "list"]);
    assert_eq!(output.status.code(), Some(0), "by the lock file: {}", said(&output));
    assert!(!place.logs().contains(&admin), "{}", place.logs());
}
