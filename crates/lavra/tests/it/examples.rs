//! The examples do what the documents say of them.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::program::{Place, Running, port, until};

const SETTINGS: &str =
    "[fleet]\npolling_session_ms = 100\npolling_job_ms = 200\npolling_queue_ms = 500\n";

fn address() -> (String, String) {
    let port = port();
    (format!("127.0.0.1:{port}"), port.to_string())
}

/// A command with a secret, which must end well.
fn add(place: &Place, args: &[&str], secret: (&str, &str)) {
    let output = place.command(args).env(secret.0, secret.1).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An example, with its arguments and a variable.
fn python(place: &Place, args: &[&str], variable: (&str, &str)) -> Running {
    let python = std::env::var("LAVRA_TEST_PYTHON").expect("run it by cargo xtask test");
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let log = std::fs::File::create(place.directory.path().join("python.log")).unwrap();
    let mut command = Command::new(python);
    command
        .arg(format!("{examples}/{}", args[0]))
        .args(&args[1..])
        .env(variable.0, variable.1)
        .current_dir(place.directory.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    Running(command.spawn().unwrap())
}

/// What a proxy says in the server's place while it cannot reach it, or does not want to.
const TROUBLE: [&str; 4] = [
    "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html>502 Bad Gateway</html>",
    "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\n\r\nslow down",
    "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<html>404 Not Found</html>",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>we are back soon</html>",
];

/// A proxy before a server, which answers by itself at first; where it is.
fn proxy_in_trouble(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().flatten().enumerate() {
            match TROUBLE.get(number) {
                Some(trouble) => say(client, trouble),
                None => pass_on(client, TcpStream::connect(&server).unwrap()),
            }
        }
    });
    address
}

fn say(mut client: TcpStream, text: &str) {
    client.write_all(text.as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    // A socket that is closed with something unread takes back what it said.
    let _gone = std::io::copy(&mut client, &mut std::io::sink());
}

fn pass_on(client: TcpStream, server: TcpStream) {
    let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
    for (mut from, mut to) in [(client, server), back] {
        std::thread::spawn(move || {
            let _gone = std::io::copy(&mut from, &mut to);
            let _gone = to.shutdown(Shutdown::Write);
        });
    }
}

#[test]
fn a_worker_in_python_asks_again_when_a_proxy_answers_in_the_servers_place() {
    let place = Place::on_duckdb();
    let (serving, _) = address();
    let server = place.start(&["serve", "--listen", &serving]);
    place.until_served(&server);
    let url = format!("http://{}", proxy_in_trouble(serving));
    // A proxy of the machine is no way to the loopback.
    let _worker = python(&place, &["worker.py", "--server", &url], ("NO_PROXY", "*"));
    let order = ["task", "create", "wordcount", "--payload", r#"{"text": "so many words"}"#];
    // The type becomes known by the worker's first claim.
    let made = until(Duration::from_secs(20), || {
        let output = place.run(&order);
        output.status.success().then_some(output.stdout)
    });
    let made = String::from_utf8(made.unwrap_or_else(|| panic!("{}", place.logs()))).unwrap();
    place.until(made.trim(), Duration::from_secs(20), |task| task["status"] == "COMPLETED");
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
    let args = ["fleet_worker.py", &format!("http://{ads}/v1"), &port];
    let _worker = python(&place, &args, ("WORKER_KEY", "worker-key"));
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
