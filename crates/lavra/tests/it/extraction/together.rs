//! Several processes on one PostgreSQL.

use std::time::Duration;

use super::{MONTH, assert_audited, complete, said, world};
use crate::program::{Place, until};

#[test]
fn a_runner_helps_with_the_run_of_another_process() {
    let world = world(&["--scale", "0.3", "--fault", "latency.fixed_ms=150"]);
    let place = Place::on_postgres();
    let _runner = place.start(&["runner", "--allow-private"]);
    let args = [
        &["extract", "run", "pncp"],
        &MONTH[..],
        &["--endpoint", "contratacoes_publicacao", "--base-url", &world.base],
    ]
    .concat();
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let helped = until(Duration::from_secs(10), || {
        place.logs().contains("helped with an extraction").then_some(())
    });
    assert!(helped.is_some(), "{} {}", said(&output), place.logs());
    assert_audited(&place);
    assert_eq!(complete(&place, &args)["requests"], 0);
}

#[test]
fn a_run_is_of_who_was_told_to_run_it_and_others_keep_off_where_they_may_not_call() {
    let world = world(&["--scale", "0.3", "--fault", "latency.fixed_ms=150"]);
    let place = Place::on_postgres();
    let _runners = [place.start(&["runner"]), place.start(&["runner"])];
    let awake = place.json(&["task", "create", "cleanup"]);
    place.until(awake["id"].as_str().unwrap(), Duration::from_secs(20), |task| {
        task["status"] == "COMPLETED"
    });
    let args = [
        &["extract", "run", "pncp"],
        &MONTH[..],
        &["--endpoint", "contratacoes_publicacao", "--base-url", &world.base],
    ]
    .concat();
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(0), "{} {}", said(&output), place.logs());
    let logs = place.logs();
    assert!(!logs.contains("help"), "{logs}");
    assert_audited(&place);
}
