//! The disk of a DuckDB file runs full under a server with tasks, and has room again.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::program::{Place, Running, until};

/// A server whose directory is a small file system that only it sees.
fn serve_on_a_small_disk(place: &Place) -> Running {
    let args = ["serve", "--demo-types", "--listen", "127.0.0.1:0"];
    let mut command = place.command_on_a_small_disk(256, &args);
    command.stderr(std::fs::File::create(place.directory.path().join("server.log")).unwrap());
    Running(command.spawn().unwrap())
}

#[test]
fn a_full_disk_holds_tasks_up_and_loses_none() {
    let place = Place::on_duckdb();
    let server = serve_on_a_small_disk(&place);
    let inside = format!("/proc/{}/root{}", server.0.id(), place.directory.path().display());
    let inside = PathBuf::from(inside);
    let url = until(Duration::from_secs(20), || {
        let holder = std::fs::read(inside.join("lavra.duckdb.lock")).ok()?;
        let holder: Value = serde_json::from_slice(&holder).ok()?;
        holder["url"].as_str().map(str::to_owned)
    });
    let url = url.unwrap_or_else(|| panic!("no server: {}", place.logs()));
    let lavra = |args: &[&str]| place.json(&[args, &["--server", &url]].concat());
    let create = |payload: &str| {
        let task = lavra(&["task", "create", "count", "--payload", payload]);
        task["id"].as_str().unwrap().to_owned()
    };
    let is = |id: &str, status: &str| {
        let seen = until(Duration::from_secs(40), || {
            let task = lavra(&["task", "show", id]);
            (task["status"] == status).then_some(())
        });
        assert!(seen.is_some(), "not {status}: {}\n{}", lavra(&["task", "show", id]), place.logs());
    };

    let fill = |name: &str, but_for: usize| {
        let stat = rustix::fs::statvfs(&inside).unwrap();
        let free = (stat.f_bavail * stat.f_frsize) as usize;
        let filler = inside.join(name);
        std::fs::write(&filler, vec![7; free - but_for]).unwrap();
        filler
    };
    // Most of it before, so that the task is still at work when the rest is full.
    fill("ballast", 100 << 20);
    let running = create(r#"{"to": 40, "step_ms": 100}"#);
    is(&running, "IN_PROGRESS");
    let filler = fill("filler", 2 << 20);

    let order = ["task", "create", "count", "--server", &url];
    let refused = place.run(&order);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("disk_full"), "{said}");
    // The work is done by now; that it is has to wait.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(lavra(&["task", "show", &running])["status"], "IN_PROGRESS");
    assert!(
        place.logs().contains("the disk is nearly full"),
        "the log does not say so: {}",
        place.logs()
    );

    std::fs::remove_file(&filler).unwrap();
    is(&running, "COMPLETED");
    let task = lavra(&["task", "show", &running]);
    assert_eq!((&task["attempts"], &task["retry_count"]), (&1.into(), &0.into()), "{task}");
    is(&create(r#"{"to": 2, "step_ms": 10}"#), "COMPLETED");
}
