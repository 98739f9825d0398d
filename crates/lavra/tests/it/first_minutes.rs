//! What goes wrong in the first five minutes: each is said with a code, where, and what to do about it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};

use crate::program::Place;

/// That it ended so, and said all of this and printed nothing.
fn assert_told(output: &Output, code: i32, says: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in says {
        assert!(said.contains(part), "it does not say {part:?}: {said}");
    }
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    let last = said.lines().last().unwrap_or_default();
    let (_, detail) = last.split_once("]: ").unwrap_or_default();
    for part in detail.split(": ").filter(|part| part.len() > 20) {
        assert_eq!(detail.matches(part).count(), 1, "said twice: {part:?} in {said}");
    }
}

fn on(database: &str) -> Place {
    Place { database: database.to_owned(), ..Place::on_duckdb() }
}

fn write(place: &Place, name: &str, content: &[u8]) {
    std::fs::write(place.directory.path().join(name), content).unwrap();
}

#[test]
fn a_port_that_is_taken() {
    let place = Place::on_duckdb();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["serve", "worker", "writer", "world"] {
        let output = place.run(&[command, "--listen", &address]);
        assert_told(&output, 1, &["error[cannot_listen]", &address, "--listen takes another port"]);
    }
    let port = taken.local_addr().unwrap().port().to_string();
    let world = ["world", "--listen", "127.0.0.1:0"];
    let proxies = ["--ads", "127.0.0.1:0", "--proxies", "1", "--proxy-port", &port];
    let others = [
        (&["runner", "--metrics", &address][..], "--metrics"),
        (&[&world[..], &["--fleet", &address]].concat(), "--fleet"),
        (&[&world[..], &["--ads", &address]].concat(), "--ads"),
        (&[&world[..], &proxies].concat(), "--proxy-port"),
    ];
    for (args, flag) in others {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let advice = format!("{flag} takes another port");
        assert!(said.contains(&address) && said.contains(&advice), "{said}");
    }
}

#[test]
fn an_address_of_another_machine() {
    let place = Place::on_duckdb().with_variable("LAVRA_WORKER_API_KEY", "key");
    // Kept for documentation: nobody has it.
    let output = place.run(&["worker", "--listen", "192.0.2.1:8100"]);
    assert_told(&output, 1, &["error[cannot_listen]", "an address of this machine"]);
}

#[test]
fn a_file_that_a_server_has() {
    let place = Place::on_duckdb();
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["runner"], &["doctor"]] {
        let says = ["error[database_held]", "http://127.0.0.1:", "stop it", "PostgreSQL"];
        assert_told(&place.run(command), 1, &says);
    }
}

/// What Python has of DuckDB, in the directory of the place.
fn python(place: &Place, script: &str) -> Command {
    let program = std::env::var("LAVRA_TEST_PYTHON").expect("run it by cargo xtask test");
    let mut command = Command::new(program);
    command.args(["-c", &format!("import duckdb, sys; {script}")]);
    command.current_dir(place.directory.path());
    command
}

#[test]
fn a_file_that_another_program_has() {
    let place = Place::on_duckdb();
    place.json(&["sql", "SELECT 1"]);
    let hold = "c = duckdb.connect('lavra.duckdb'); print('held', flush=True); sys.stdin.read()";
    let mut holder = python(&place, hold);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    holder.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
    let month = ["--from", "2025-03", "--to", "2025-03", "--base-url", "http://127.0.0.1:1"];
    let run = [&["extract", "run", "pncp"], &month[..]].concat();
    let commands = [&run[..], &["serve", "--listen", "127.0.0.1:0"], &["sql", "SELECT 1"]];
    // One after the other: each waits a moment for the holder, and has our own lock meanwhile.
    let ended = commands.map(|args| place.run(args));
    let pid = holder.id().to_string();
    drop(holder.stdin.take());
    holder.wait().unwrap();
    for output in ended {
        assert_told(
            &output,
            1,
            &["error[database_held]", "lavra.duckdb", &pid, "wait until it has ended"],
        );
    }
}

/// DuckDB's own format of years ago, with somebody's table in it.
#[test]
fn a_file_that_is_older_than_lavra() {
    let place = Place::on_duckdb();
    let old = "duckdb.connect().execute(\"ATTACH 'lavra.duckdb' AS old (STORAGE_VERSION 'v0.10.2'); \
               CREATE TABLE old.main.mine AS SELECT 42 AS answer\")";
    assert!(python(&place, old).status().unwrap().success());
    place.json(&["migrate"]);
    place.json(&["task", "list"]);
    assert_eq!(place.json(&["sql", "SELECT answer FROM mine"])[0]["answer"], 42);
}

#[test]
fn a_server_for_a_command_that_asks_none() {
    for command in ["demo", "doctor", "runner", "serve", "writer", "migrate", "secret list"] {
        let place = Place::on_duckdb();
        let words = ["--server", "http://127.0.0.1:1"].into_iter().chain(command.split(' '));
        let output = place.run(&words.collect::<Vec<_>>());
        assert_told(&output, 2, &["error[bad_usage]", "--server", "asks no server"]);
    }
}

#[test]
fn no_postgresql_there() {
    let output = on("postgres://someone@127.0.0.1:1/nothing").run(&["task", "list"]);
    let says = ["error[database_unreachable]", "127.0.0.1:1", "is it running", "--database"];
    assert_told(&output, 1, &says);
    let waits = String::from_utf8_lossy(&output.stderr).matches("waiting for").count();
    assert_eq!(waits, 1, "one line says that it waits");
    let output = on("postgres://someone@nowhere.invalid/nothing").run(&["task", "list"]);
    assert_told(&output, 1, &["error[database_unreachable]", "nowhere.invalid", "its address"]);
}

/// What a server answers to a wrong password, whatever it is told.
fn refusing_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let _startup = stream.read(&mut [0; 1024]);
            let fields =
                b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"ana\"\0\0";
            let mut message = vec![b'E'];
            message.extend((fields.len() as u32 + 4).to_be_bytes());
            message.extend(fields);
            let _gone = stream.write_all(&message);
        }
    });
    format!("postgres://ana:hunter2@{address}/lavra")
}

#[test]
fn a_wrong_password() {
    let output = on(&refusing_server()).run(&["task", "list"]);
    let says = ["error[database_unreachable]", "password authentication failed", "the password"];
    assert_told(&output, 1, &says);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("hunter2") && !said.contains("waiting"), "{said}");
}

#[test]
fn urls_that_are_none() {
    for (database, says) in [
        ("mysql://127.0.0.1/x", "not mysql://"),
        ("postgres:/127.0.0.1/x", "postgres://user:password@host:5432/database"),
        ("postgres://127.0.0.1:port/x", "cannot be read"),
    ] {
        assert_told(&on(database).run(&["task", "list"]), 2, &["error[bad_configuration]", says]);
    }
    let place = Place::on_duckdb();
    for server in ["127.0.0.1:8080", "ftp://127.0.0.1", "nonsense"] {
        let output = place.run(&["--server", server, "task", "list"]);
        assert_told(&output, 2, &["error[bad_usage]", server, "http://127.0.0.1:8080"]);
    }
    let output = place.run(&["--broker", "http://me:hunter2@mq", "task", "list"]);
    assert_told(&output, 2, &["error[bad_usage]", "amqp://user:password@host:port/vhost"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hunter2"));
}

#[test]
fn a_server_that_is_not_there() {
    let output = Place::on_duckdb().run(&["--server", "http://127.0.0.1:1", "task", "list"]);
    assert_told(&output, 1, &["error[server_unreachable]", "http://127.0.0.1:1", "lavra serve"]);
}

#[test]
fn a_file_that_is_no_database() {
    for (content, says) in [
        (&b"hello, this is text and no table"[..], "not a DuckDB file"),
        (b"SQLite format 3\0 and its pages", "not a DuckDB file"),
        (b"", "is empty"),
    ] {
        let place = Place::on_duckdb();
        write(&place, "lavra.duckdb", content);
        let says = ["error[bad_configuration]", "lavra.duckdb", says, "--database"];
        assert_told(&place.run(&["task", "list"]), 2, &says);
        let left = std::fs::read(place.directory.path().join("lavra.duckdb")).unwrap();
        assert_eq!(left, content, "it was written to");
    }
    let place = Place::on_duckdb();
    std::fs::create_dir(place.directory.path().join("lavra.duckdb")).unwrap();
    assert_told(&place.run(&["task", "list"]), 2, &["is a directory", "--database takes a file"]);
}

#[test]
fn a_directory_that_is_not_there_or_cannot_be_written_to() {
    let output = on("missing/lavra.duckdb").run(&["task", "list"]);
    assert_told(&output, 2, &["error[bad_configuration]", "missing is not there", "make it"]);
    let output =
        Place::on_duckdb().command_on_a_read_only_disk(&["task", "list"]).output().unwrap();
    assert_told(&output, 2, &["error[bad_configuration]", "cannot be written to", "--database"]);
}

#[test]
fn a_file_of_a_newer_version() {
    let place = Place::on_duckdb();
    place.json(&["task", "list"]);
    let newer = "duckdb.connect('lavra.duckdb').execute(\"INSERT INTO \
                 kodus_workflow.schema_migrations (id, description) VALUES ('999', 'of tomorrow')\")";
    let written = python(&place, newer).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let says = ["error[database_newer]", "999", "use that version, or another database"];
    assert_told(&place.run(&["task", "list"]), 1, &says);
}

#[test]
fn settings_that_cannot_be_read_or_do_not_exist() {
    let place = Place::on_duckdb();
    let output = place.run(&["--config", "none.toml", "task", "list"]);
    assert_told(&output, 2, &["error[bad_usage]", "the settings file none.toml cannot be read"]);
    write(&place, "lavra.toml", b"databse = \"x\"\n");
    let output = place.run(&["task", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["error[bad_usage]", "lavra.toml", "line 1", "databse", "`database`"] {
        assert!(said.contains(part), "it does not say {part:?}: {said}");
    }
    // Nothing to those who have no settings.
    let output = place.run(&["completions", "bash"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_name_that_the_server_does_not_know() {
    let place = Place::on_duckdb();
    let output = place.run(&["serve", "--host", "http://lavra.example"]);
    assert_told(&output, 2, &["error[bad_usage]", "--host", "a name alone"]);

    let place = place.with_variable("LAVRA_HOSTS", "lavra.example,server");
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let logs = place.logs();
    let (_, address) = logs.split_once("url=\"http://").or(logs.split_once("url=http://")).unwrap();
    let address: String = address
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || ".:".contains(*letter))
        .collect();
    let status = |host: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET /tasks HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    // Known, and needs a key; not known.
    assert_eq!([status("server:8080"), status("lavra.example"), status("other")], [401, 401, 421]);
}
