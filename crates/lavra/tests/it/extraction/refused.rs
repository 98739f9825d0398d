//! What is typed wrong, and what may not be touched.

use std::process::Command;

use super::{ONE, complete, run, said, world};
use crate::program::Place;

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_opened() {
    let place = Place::on_duckdb();
    let write = |name: &str, text: &str| {
        std::fs::write(place.directory.path().join(name), text).unwrap();
    };
    let own = "name = \"shop\"\nbase_url = \"http://127.0.0.1:1\"\n[request]\nfrom = \"a\"\n\
               to = \"b\"\npage = \"p\"\n[response]\nrecords = \"/r\"\ntotal = \"/t\"\n\
               [[endpoint]]\nname = \"orders\"\npath = \"/o\"\nfirst_month = \"2024-01\"\n";
    write("typo.toml", &format!("{own}page_sise = 10\n"));
    let cap = format!("{own}page_size = 600\npage_size_range = [10, 500]\n");
    write("cap.toml", &cap);
    let months = |from: &'static str, to: &'static str| {
        vec!["extract", "run", "pncp", "--from", from, "--to", to]
    };
    let cases: &[(Vec<&str>, &[&str])] = &[
        (months("2025-03", "2025-02"), &["ends before it begins"]),
        (months("2025-13", "2025-13"), &["--from", "2025-13", "is no month"]),
        (months("March", "2025-03"), &["is no month"]),
        (months("2019-01", "2019-12"), &["nothing before 2021-08"]),
        (months("2999-01", "2999-02"), &["has not begun yet"]),
        (
            [months("2025-01", "2025-01"), vec!["--endpoint", "contrato"]].concat(),
            &["no endpoint \"contrato\"", "contratos_publicacao"],
        ),
        (vec!["extract", "run", "pnpc", "--from", "2025-01", "--to", "2025-01"], &["pncp"]),
        (
            [months("2025-01", "2025-01"), vec!["--base-url", "ftp://x"]].concat(),
            &["ftp://x", "no http URL"],
        ),
        (vec!["extract", "check", "typo.toml"], &["typo.toml:14", "page_sise", "page_size"]),
        (
            vec!["extract", "check", "cap.toml"],
            &["cap.toml:14: page_size 600 is outside of 10 to 500"],
        ),
        (vec!["extract", "check", "none.toml"], &["none.toml"]),
        (
            vec!["extract", "run", "--source", "cap.toml", "--from", "2025-01", "--to", "2025-01"],
            &["cap.toml", "line 14", "outside of 10 to 500"],
        ),
        (vec!["extract", "audit", "pncp", "--endpoint", "x"], &["no endpoint \"x\""]),
        (vec!["extract", "export", "pncp", "--out", "o", "--from", "x"], &["is no month"]),
        (vec!["extract", "retry", "nothing"], &["no source \"nothing\""]),
    ];
    for (args, says) in cases {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        for part in *says {
            assert!(
                said(&output).contains(part),
                "{args:?} does not say {part:?}: {}",
                said(&output)
            );
        }
    }
    assert!(!place.directory.path().join("lavra.duckdb").exists(), "nothing was opened");
    for command in [&["audit", "pncp"][..], &["status", "pncp"], &["export", "pncp", "--out", "x"]]
    {
        let looked = place.run(&[&["extract"], command].concat());
        for part in [
            "error[source_not_found]",
            "nothing of \"pncp\" was extracted here",
            "`lavra extract run pncp --from MONTH --to MONTH` does it",
        ] {
            assert!(said(&looked).contains(part), "{command:?} does not say {part:?}: {looked:?}");
        }
    }
    let own = place.run(&["extract", "status", "mine"]);
    assert!(said(&own).contains("extract run --source FILE --from MONTH"), "{own:?}");
}

#[test]
fn tables_of_a_newer_version_are_left_alone() {
    let (world, place) = (world(&["--scale", "0.01"]), Place::on_postgres());
    complete(&place, &run(&world.base, &[]));
    let newer = "INSERT INTO kodus_workflow.schema_migrations (id, description)
                 VALUES ('pncp:999', 'of tomorrow')";
    let args = ["--no-psqlrc", "--quiet", "--command", newer, &place.database];
    assert!(Command::new("psql").args(args).status().unwrap().success());
    let output = place.run(&run(&world.base, &["--refresh"]));
    assert_ne!(output.status.code(), Some(0));
    assert!(said(&output).contains("pncp:999"), "{}", said(&output));
}

#[test]
fn the_status_of_what_is_not_there_is_an_error() {
    let (world, place) = (world(&["--scale", "0.01"]), Place::on_duckdb());
    complete(&place, &run(&world.base, &[]));
    let status = |more: &[&str]| place.run(&[&["extract", "status", "pncp"], more].concat());
    let whole = status(&["--endpoint", ONE[1]]);
    assert!(String::from_utf8_lossy(&whole.stdout).contains(ONE[1]), "{whole:?}");
    let base = status(&["--endpoint", "contratacoes_publicacao"]);
    assert_eq!(base.stdout, whole.stdout, "without the value of its fan-out");
    let output = status(&["--from", "2025-03", "--to", "2025-02"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let output = status(&["--endpoint", "blah"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains(ONE[1]), "{}", said(&output));
}
