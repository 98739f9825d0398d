//! A file that is opened anew now and then, so that DuckDB forgets what it kept of each fold.

use std::time::Duration;

use lavra_db::duckdb::{AccessMode, Config, Connection, params};
use lavra_db::{Duck, DuckOptions, Schema};

use crate::support::child::{self, role, tell};
use crate::support::place::File;

/// Looks into the file whenever it can, for a moment, as a program that knows nothing of lavra.
#[tokio::test]
async fn child() {
    let Some((_peep, path)) = role() else { return };
    tell("up");
    loop {
        let config = Config::default().access_mode(AccessMode::ReadOnly).unwrap();
        if let Ok(connection) = Connection::open_with_flags(&path, config) {
            let sql = "SELECT count(*) FROM bodies";
            let bodies: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
            std::thread::sleep(Duration::from_millis(30));
            tell(bodies);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_the_file_meanwhile_is_waited_for() {
    let file = File::new();
    let options = DuckOptions { checkpoint_mb: 1, folds: 1, ..Default::default() };
    let duck = Duck::open(&file.path(), Schema::default(), options).unwrap();
    let make = "CREATE TABLE bodies (n BIGINT, body TEXT)";
    duck.write("make the table", move |tx| tx.execute_batch(make)).await.unwrap();
    let mut other = child::start(child::command(module_path!(), "peep", &file.path()));
    other.hear().unwrap();
    for n in 0..40_i64 {
        let body = format!("{n}-").repeat(700_000);
        let store = move |tx: &Connection| {
            tx.execute("INSERT INTO bodies VALUES ($1, $2)", params![n, body])
        };
        duck.write("store a body", store).await.unwrap();
    }
    let seen = other.kill();
    let count = |connection: &Connection| {
        connection.query_row("SELECT count(*) FROM bodies", [], |row| row.get::<_, i64>(0))
    };
    assert_eq!(duck.read("count", count).await.unwrap(), 40);
    assert!(!seen.is_empty(), "nobody ever took the file in between");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_speaks_of_the_end_is_not_the_end() {
    let file = File::new();
    let duck = Duck::open(&file.path(), Schema::default(), DuckOptions::default()).unwrap();
    for word in ["FATAL Error", "INTERNAL Error", "IO Error", "has been invalidated"] {
        let sql = format!("SELECT '{word}'::INT");
        let ask = move |connection: &Connection| connection.query_row(&sql, [], |row| row.get(0));
        let error = duck.read::<i32, _>("ask", ask).await.unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert!(!error.is_transient(), "{error}");
    }
}

/// A handle that takes its time to go.
struct Lingering {
    duck: Duck,
}

impl Drop for Lingering {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_can_be_opened_again_at_once_whatever_its_last_job_held() {
    let file = File::new();
    for _ in 0..3 {
        let duck = Duck::open(&file.path(), Schema::default(), DuckOptions::default()).unwrap();
        let held = Lingering { duck: duck.clone() };
        let number = duck.write("take a number", move |_| Ok(held.duck.next_sequence())).await;
        assert!(number.unwrap() > 0);
        tokio::task::spawn_blocking(move || drop(duck)).await.unwrap();
    }
}
