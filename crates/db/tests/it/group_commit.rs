//! What was acknowledged is stored, and what was not is not, whatever the neighbours in a group do.

use std::collections::BTreeSet;
use std::time::Duration;

use lavra_db::duckdb::Connection;
use lavra_db::{Duck, Error};

use crate::support::place::File;

async fn with_numbers(file: &File) -> Duck {
    let duck = file.open();
    let make = "CREATE TABLE numbers (n BIGINT PRIMARY KEY); INSERT INTO numbers VALUES (0)";
    duck.write("make the table", move |tx| tx.execute_batch(make)).await.unwrap();
    duck
}

async fn stored(duck: &Duck) -> BTreeSet<i64> {
    let read = |connection: &Connection| {
        let mut statement = connection.prepare("SELECT n FROM numbers")?;
        let rows: Vec<i64> =
            statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(rows)
    };
    let rows = duck.read("read the numbers", read).await.unwrap();
    let set: BTreeSet<i64> = rows.iter().copied().collect();
    assert_eq!(set.len(), rows.len(), "a number is stored twice");
    set
}

/// Keeps the writer busy, so that what is submitted meanwhile becomes one group.
fn occupy(duck: &Duck) -> tokio::task::JoinHandle<()> {
    let duck = duck.clone();
    tokio::spawn(async move {
        let wait = |_: &Connection| {
            std::thread::sleep(Duration::from_millis(50));
            Ok(())
        };
        duck.write("occupy the writer", wait).await.unwrap();
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Good,
    /// By DuckDB's Appender, which knows nothing of the connection's `USE`.
    Appends,
    /// Meets a constraint, says nothing of it, and goes on.
    Swallows,
    Fails,
    Panics,
}

async fn submit(duck: Duck, n: i64, kind: Kind) -> Result<i64, Error> {
    let job = move |tx: &Connection| {
        if kind == Kind::Appends {
            let mut appender = tx.appender_to_db("numbers", "main")?;
            appender.append_row([n])?;
            appender.flush()?;
            return Ok(n);
        }
        tx.execute("INSERT INTO numbers VALUES ($1)", [n])?;
        match kind {
            Kind::Good | Kind::Appends => {}
            Kind::Swallows => drop(tx.execute("INSERT INTO numbers VALUES (0)", [])),
            Kind::Fails => drop(tx.execute("INSERT INTO numbers VALUES (0)", [])?),
            Kind::Panics => panic!("a job that panics, as it should in this test"),
        }
        Ok(n)
    };
    duck.write("store a number", job).await
}

#[tokio::test]
async fn acknowledged_is_stored_exactly_among_bad_neighbours() {
    let file = File::new();
    let duck = with_numbers(&file).await;
    let busy = occupy(&duck);
    let jobs: Vec<_> = (1..=300)
        .map(|n| {
            let kind = match n % 30 {
                3 | 14 => Kind::Appends,
                7 => Kind::Swallows,
                13 => Kind::Fails,
                23 => Kind::Panics,
                _ => Kind::Good,
            };
            (kind, tokio::spawn(submit(duck.clone(), n, kind)))
        })
        .collect();
    busy.await.unwrap();
    let mut acknowledged = BTreeSet::from([0]);
    for (kind, job) in jobs {
        let is_good = matches!(kind, Kind::Good | Kind::Appends);
        match job.await.unwrap() {
            Ok(n) => {
                assert!(is_good, "a bad job was acknowledged");
                acknowledged.insert(n);
            }
            Err(error) => {
                assert!(!is_good, "a good job was refused: {error}");
                assert!(error.to_string().starts_with("could not store a number"), "{error}");
            }
        }
    }
    assert_eq!(stored(&duck).await, acknowledged);
    drop(duck);
    assert_eq!(stored(&file.open()).await, acknowledged, "after opening again");
}

#[tokio::test]
async fn an_aborted_transaction_is_never_acknowledged() {
    let file = File::new();
    let duck = with_numbers(&file).await;
    let error = submit(duck.clone(), 1, Kind::Swallows).await.unwrap_err();
    assert!(error.to_string().contains("transaction is aborted"), "{error}");
    assert_eq!(stored(&duck).await, BTreeSet::from([0]));
}

#[tokio::test]
async fn a_job_that_panics_is_told_so_and_the_next_one_is_served() {
    let file = File::new();
    let duck = with_numbers(&file).await;
    let error = submit(duck.clone(), 1, Kind::Panics).await.unwrap_err();
    assert_eq!(error.to_string(), "could not store a number: a database job panicked");
    assert_eq!(submit(duck.clone(), 2, Kind::Good).await.unwrap(), 2);
    assert_eq!(stored(&duck).await, BTreeSet::from([0, 2]));
}

#[tokio::test]
async fn a_read_that_fails_inside_a_transaction_does_not_spoil_the_next() {
    let file = File::new();
    let duck = with_numbers(&file).await;
    for _ in 0..5 {
        let spoil = |connection: &Connection| {
            connection.execute_batch("BEGIN; SELECT error('as it should')")
        };
        let error = duck.read("spoil a reader", spoil).await.unwrap_err();
        assert!(error.to_string().starts_with("could not spoil a reader"), "{error}");
        assert_eq!(stored(&duck).await, BTreeSet::from([0]));
    }
}

#[tokio::test]
async fn the_log_is_folded_into_the_file_while_readers_read() {
    let file = File::new();
    // The file is opened anew now and then, too.
    let options = lavra_db::DuckOptions { checkpoint_mb: 1, folds: 2, ..Default::default() };
    let duck = Duck::open(&file.path(), lavra_db::Schema::default(), options).unwrap();
    let make = "CREATE TABLE bodies (n BIGINT, body TEXT); CREATE TABLE counts (n BIGINT);
                INSERT INTO counts VALUES (0)";
    duck.write("make the tables", move |tx| tx.execute_batch(make)).await.unwrap();
    let reader = duck.clone();
    let reading = tokio::spawn(async move {
        let consistent = |connection: &Connection| {
            connection.execute_batch("BEGIN")?;
            let sql = "SELECT (SELECT count(*) FROM bodies) - (SELECT sum(n) FROM counts)";
            let difference = connection.query_row(sql, [], |row| row.get::<_, i64>(0))?;
            std::thread::sleep(Duration::from_millis(5));
            connection.execute_batch("COMMIT")?;
            Ok(difference)
        };
        loop {
            assert_eq!(reader.read("compare", consistent).await.unwrap(), 0);
        }
    });
    let mut longest = 0;
    for n in 0..40_i64 {
        let body = format!("{n}").repeat(100_000);
        let job = move |tx: &Connection| {
            tx.execute_batch("UPDATE counts SET n = n + 1")?;
            tx.execute("INSERT INTO bodies VALUES ($1, $2)", lavra_db::duckdb::params![n, body])
        };
        duck.write("store a body", job).await.unwrap();
        let log = file.directory().join("lavra.duckdb.wal");
        longest = longest.max(std::fs::metadata(log).map_or(0, |log| log.len()));
    }
    assert!(!reading.is_finished(), "the reader met a difference");
    reading.abort();
    assert!(longest < 3 << 20, "the log grew to {longest} bytes");
}

/// A reader's transaction is in the way of the CHECKPOINT before and after a change of the schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_changes_also_while_others_read() {
    let file = File::new();
    let duck = with_numbers(&file).await;
    let reading: Vec<_> = (0..2)
        .map(|_| {
            let duck = duck.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    let read = |connection: &Connection| {
                        connection.execute_batch("BEGIN; SELECT count(*) FROM numbers")?;
                        std::thread::sleep(Duration::from_millis(30));
                        connection.execute_batch("COMMIT")
                    };
                    duck.read("read slowly", read).await.unwrap();
                }
            })
        })
        .collect();
    for n in 1..=10 {
        submit(duck.clone(), n, Kind::Good).await.unwrap();
        let sql = format!("CREATE TABLE another_{n} (n BIGINT)");
        duck.reshape(move |connection| connection.execute_batch(&sql)).await.unwrap();
    }
    for reader in reading {
        reader.await.unwrap();
    }
    assert_eq!(stored(&duck).await, (0..=10).collect());
}
