//! What is typed, and what comes back: data on stdout, the rest on stderr, an exit code.

use std::io::Write;
use std::process::Stdio;

use crate::program::Place;

/// Runs, and checks the exit code and that stderr says all of `says`.
fn refused(place: &Place, args: &[&str], code: i32, says: &[&str]) {
    let output = place.run(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    for part in says {
        assert!(said.contains(part), "{args:?} does not say {part:?}: {said}");
    }
    assert!(output.stdout.is_empty(), "{args:?} printed data");
}

#[test]
fn mistakes_are_said_with_a_code_and_what_to_do() {
    let place = Place::on_duckdb();
    let id = "01a1e14f-ade5-7000-8cc3-91c5359e2aa9";
    refused(&place, &["task", "create", "nonsense"], 1, &["error[unknown_task_type]", "cleanup"]);
    refused(&place, &["task", "create", "http", "--payload", "{"], 2, &["--payload is not JSON"]);
    refused(&place, &["task", "show", id], 1, &["error[task_not_found]", id]);
    refused(&place, &["task", "show", "123"], 1, &["error[bad_id]", "copy it whole"]);
    refused(
        &place,
        &["serve", "--listen", "0.0.0.0:0"],
        2,
        &["lavra key create NAME --role admin"],
    );
    refused(&place, &["world", "--listen", "0.0.0.0:0"], 2, &["only loopback"]);
    refused(&place, &["--config", "none.toml", "task", "list"], 2, &["bad_usage", "none.toml"]);
    for wrong in ["here", "8080", "127.0.0.1:99999", ":"] {
        let says = ["error[bad_usage]", wrong, "it is HOST:PORT, such as 127.0.0.1:8080"];
        refused(&place, &["serve", "--listen", wrong], 2, &says);
    }
    refused(&place, &["task", "dance"], 2, &["unrecognized subcommand"]);
    refused(&place, &["mission", "import", "none.csv"], 2, &["the CSV file none.csv is not there"]);
    refused(&place, &["sql", "DROP TABLE x"], 1, &["must be one SELECT"]);
}

#[test]
fn a_wrong_value_is_told_with_those_there_are_before_anything_is_opened() {
    let place = Place::on_duckdb();
    let day = ["--language", "pt", "--to", "2025-01-02"];
    let add = |from| [&["mission", "add", "--from", from][..], &day].concat();
    let cases: &[(&[&str], &[&str])] = &[
        (&["key", "create", "a", "--role", "boss"], &["boss", "viewer, operator, admin, writer"]),
        (&["task", "list", "--status", "DONE"], &["DONE", "PENDING, IN_PROGRESS, COMPLETED"]),
        (&["task", "list", "--after", "yesterday"], &["yesterday", "2025-01-31T08:00:00Z"]),
        (&["fleet", "report", "nothing"], &["nothing", "failures, workers, proxies"]),
        (&["fleet", "settings", "--proxy-failures", "some"], &["total, consecutive"]),
        (&["mission", "list", "--status", "lost"], &["queued, running, completed"]),
        (&["mission", "retry", "--again-from", "start"], &["write, scrape"]),
        (&add("2025-01-03"), &["--from 2025-01-03 --to 2025-01-02", "ends before it begins"]),
        (&add("31/01/2025"), &["31/01/2025", "2025-01-31"]),
        (&["schedule", "set", "a", "http", "61 * * * *"], &["error[bad_usage]", "not a cron line"]),
        (&["extract", "check", "none.toml"], &["the source file none.toml is not there"]),
        (&["worker", "--source", "none.toml"], &["the source file none.toml is not there"]),
        (&["worker", "--base-url", "nonsense"], &["--base-url nonsense", "such as http://"]),
        (&["worker", "--base-url", "localhost:80"], &["--base-url", "such as http://"]),
        (&["world", "--fault", "nonsense=1"], &["no fault \"nonsense\"", "too_many"]),
    ];
    for (args, says) in cases {
        refused(&place, args, 2, says);
    }
    assert!(!place.directory.path().join("lavra.duckdb").exists(), "something was opened");
}

#[test]
fn a_doctor_looks_and_changes_nothing() {
    let place = Place::on_duckdb();
    let file = place.directory.path().join("lavra.duckdb");
    let looked = |place: &Place, says: &str, code| {
        let output = place.run(&["doctor"]);
        let found = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(found.contains(says), "it does not say {says:?}: {found}");
    };
    looked(&place, "is not there yet", 3);
    assert!(!file.exists(), "it was made by looking");
    place.json(&["migrate"]);
    looked(&place, "its schema is up to date", 0);

    let server = Place::on_postgres();
    for _ in 0..2 {
        looked(&server, "its schema is not up to date", 3);
    }
    server.json(&["migrate"]);
    // Whether it keeps statistics or not.
    looked(&server, "its schema is up to date", 0);
    looked(&server, "pg_stat_statements", 0);
}

#[test]
fn a_filter_of_the_log_that_is_none_is_refused() {
    let place = Place::on_duckdb();
    let mut command = place.command(&["task", "list"]);
    let output = command.env("LAVRA_LOG", "lavra=loud").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("bad_usage") && said.contains("LAVRA_LOG=lavra=loud"), "{said}");
}

#[test]
fn whoever_opens_a_database_makes_all_of_its_tables() {
    for place in [Place::on_duckdb(), Place::on_postgres()] {
        place.json(&["task", "list"]);
        assert_eq!(place.json(&["migrate"])["applied"], serde_json::json!([]));
    }
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let place = Place {
        database: "postgres://someone:hunter2@127.0.0.1:1/nothing".into(),
        ..Place::on_duckdb()
    };
    let output = place.run(&["task", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("database_unreachable") && said.contains("127.0.0.1:1"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn a_typo_in_the_settings_is_shown_with_its_line() {
    let place = Place::on_duckdb();
    std::fs::write(place.directory.path().join("lavra.toml"), "[runner]\nconcurency = 3\n")
        .unwrap();
    refused(&place, &["task", "list"], 2, &["lavra.toml", "concurency", "concurrency"]);
    std::fs::write(place.directory.path().join("lavra.toml"), "[tasks.types.\"a b\"]\n").unwrap();
    refused(&place, &["task", "list"], 2, &["error[bad_usage]", "[tasks.types]", "a b"]);
    for (text, says) in [
        ("hosts = [\"http://a.example\"]", "hosts"),
        ("hosts = [\"a.example:80\"]", "hosts"),
        ("public_url = \"a.example\"", "public_url"),
        ("public_url = \"ftp://a.example\"", "public_url"),
        ("public_url = \"https://a.example/below\"", "public_url"),
    ] {
        let file = place.directory.path().join("lavra.toml");
        std::fs::write(file, format!("[web]\n{text}\n")).unwrap();
        refused(&place, &["task", "list"], 2, &["error[bad_usage]", "[web]", says]);
    }
}

#[test]
fn the_settings_of_a_type_count_for_those_that_come_with_the_program_too() {
    let place = Place::on_duckdb();
    std::fs::write(
        place.directory.path().join("lavra.toml"),
        "[tasks.types.http]\nmax_retries = 7\n[tasks.types.cleanup]\nmax_retries = 1\n",
    )
    .unwrap();
    let payload = r#"{"url": "http://127.0.0.1:1/"}"#;
    let task = place.json(&["task", "create", "http", "--payload", payload]);
    assert_eq!(task["max_retries"], 7, "{task}");
    assert_eq!(place.json(&["task", "create", "cleanup"])["max_retries"], 1);
    refused(&place, &["task", "create", "cleanup", "--idempotent"], 1, &["cannot be idempotent"]);
}

#[test]
fn a_schema_name_with_a_quote_is_refused() {
    let place = Place::on_duckdb();
    let output = place.command(&["migrate"]).env("DB_SCHEMA", "a\"b").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("DB_SCHEMA"));
}

#[test]
fn only_on_a_file_that_nobody_serves_does_a_new_task_wait_for_a_server() {
    for (place, waits) in [(Place::on_duckdb(), true), (Place::on_postgres(), false)] {
        let output = place.run(&["task", "create", "cleanup"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(said.contains("no server holds this database"), waits, "{said}");
    }
}

#[test]
fn a_schedule_is_shown_whole_when_it_is_set() {
    let place = Place::on_duckdb();
    let output = place.run(&["schedule", "set", "nightly", "http", "0 3 * * *"]);
    let data = String::from_utf8_lossy(&output.stdout);
    for part in ["nightly", "http", "0 3 * * *", "true", "T03:00:00Z"] {
        assert!(data.contains(part), "{part}: {data}");
    }
    let set = place.json(&["schedule", "set", "nightly", "http", "5 * * * *"]);
    assert_eq!(set["cron"], "5 * * * *", "{set}");
    assert_eq!(place.json(&["schedule", "list"])["items"].as_array().unwrap(), &[set]);
}

#[test]
fn a_held_file_is_reached_through_its_holder() {
    let place = Place::on_duckdb();
    let server = place.start(&["serve", "--demo-types", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let output = place.run(&["task", "create", "count", "--payload", r#"{"to": 2}"#, "--wait"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let bad = r#"{"to": 2, "step_ms": 1, "fail_attempts": 9}"#;
    let args = ["task", "create", "count", "--payload", bad, "--max-retries", "0", "--wait"];
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    place.run(&args);
    let letters = place.json(&["dead-letter", "list"]);
    assert_eq!(letters["items"].as_array().unwrap().len(), 2, "{letters}");
    let output = place.run(&["dead-letter", "list", "--limit", "1"]);
    let newest = letters["items"][0]["id"].as_str().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(newest), "{output:?}");
    let more = format!("more: --cursor {newest}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&more), "{output:?}");
    let rest = place.json(&["dead-letter", "list", "--cursor", newest]);
    assert_eq!(rest["items"].as_array().unwrap(), &letters["items"].as_array().unwrap()[1..]);
    // A second opener that needs the file itself says who has it.
    refused(
        &place,
        &["runner"],
        1,
        &["error[database_held]", "which serves it at http://127.0.0.1"],
    );
}

#[test]
fn the_schema_is_printed_and_applied() {
    let place = Place::on_postgres();
    let script = place.run(&["migrate", "--print"]);
    let script = String::from_utf8(script.stdout).unwrap();
    assert!(script.contains("CREATE TABLE IF NOT EXISTS kodus_workflow.tasks"), "{script}");
    // A script that a tool keeps may be applied again.
    for _ in 0..2 {
        let mut psql = std::process::Command::new("psql")
            .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", &place.database])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        psql.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(psql.wait().unwrap().success());
    }
    let output = place.run(&["migrate"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is up to date"), "{output:?}");
}

#[test]
fn secrets_of_a_file_are_sealed_with_the_key_beside_it() {
    let place = Place::on_duckdb();
    let key = place.directory.path().join("lavra.duckdb.key");
    refused(&place, &["secret", "list"], 2, &["there is no key", "LAVRA_SECRET_KEY"]);
    assert!(!key.exists(), "made by looking");
    let mut set = place.command(&["secret", "set", "token"]).stdin(Stdio::piped()).spawn().unwrap();
    set.stdin.take().unwrap().write_all(b"hunter2\n").unwrap();
    assert!(set.wait().unwrap().success());
    let made = std::fs::read(&key).unwrap();
    assert_eq!(place.json(&["secret", "list"])[0]["name"], "token");
    assert!(place.run(&["secret", "remove", "token"]).status.success());
    assert_eq!(place.json(&["secret", "list"]), serde_json::json!([]));
    assert_eq!(std::fs::read(&key).unwrap(), made);
    // A server's database is too far away for that.
    let said = ["LAVRA_SECRET_KEY is not set", "lavra secret generate-key"];
    refused(&Place::on_postgres(), &["secret", "set", "token"], 2, &said);
}

#[test]
fn completions_are_a_script() {
    let output = Place::on_duckdb().run(&["completions", "bash"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("_lavra"));
}
