//! SIGKILL at any moment: the file opens again, and everything acknowledged is in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lavra_db::duckdb::{Connection, params};
use lavra_db::{Database, Duck, DuckOptions, Migration, Schema, migrate};

use crate::support::child::{self, role, tell};
use crate::support::place::{File, open};
use crate::support::random;

/// Small, so that kills also fall into the folding of the log and the opening of the file anew.
fn open_with_short_log(path: &Path) -> Duck {
    let options = DuckOptions { checkpoint_mb: 1, folds: 2, ..Default::default() };
    Duck::open(path, Schema::default(), options).unwrap()
}

#[tokio::test]
async fn child() {
    let Some((role, path)) = role() else { return };
    match role.as_str() {
        "alter" => alter(&open(&path)).await,
        "migrate" => migrate_for_ever(open(&path)).await,
        "commit" => commit_for_ever(open_with_short_log(&path), false).await,
        "commit while others read" => commit_for_ever(open_with_short_log(&path), true).await,
        other => panic!("no such role: {other}"),
    }
}

/// Lets it work for a moment after its first word and returns all that it told.
fn killed(role: &str, path: &Path, longest: Duration) -> Vec<String> {
    let mut running = child::start(child::command(module_path!(), role, path));
    let mut told = vec![running.hear().expect("the child ended before it told anything")];
    std::thread::sleep(Duration::from_micros(random(longest.as_micros() as u64)));
    told.extend(running.kill());
    told
}

fn columns(connection: &Connection) -> lavra_db::duckdb::Result<Vec<String>> {
    let sql = "SELECT column_name FROM information_schema.columns WHERE table_name = 'altered'";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Changes a table with functions in its defaults, again and again, all of it still in the log.
async fn alter(duck: &Duck) {
    let make = "CREATE TABLE IF NOT EXISTS altered (
        id UUID DEFAULT uuid(), made TIMESTAMPTZ DEFAULT now(), word TEXT DEFAULT ('a' || 'b'),
        CHECK (length(word) > 0))";
    duck.write("make the table", move |tx| tx.execute_batch(make)).await.unwrap();
    let first = duck.read("count the columns", columns).await.unwrap().len();
    for n in first.. {
        let alter = format!(
            "ALTER TABLE altered ADD COLUMN c{n} TIMESTAMPTZ DEFAULT now();
             INSERT INTO altered DEFAULT VALUES;"
        );
        duck.write("alter", move |tx| tx.execute_batch(&alter)).await.unwrap();
        tell(format!("c{n}"));
    }
}

#[tokio::test]
async fn an_altered_table_with_functions_in_its_defaults_opens_again() {
    let file = File::new();
    for _ in 0..8 {
        let told = killed("alter", &file.path(), Duration::from_millis(40));
        let log = std::fs::metadata(file.directory().join("lavra.duckdb.wal")).unwrap();
        assert!(log.len() > 0, "the changes are not in the log: this proves nothing");
        let duck = file.open();
        let stored = duck.read("read the columns", columns).await.unwrap();
        let lost: Vec<_> = told.iter().filter(|column| !stored.contains(column)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let write = "INSERT INTO altered DEFAULT VALUES";
        duck.write("write on", move |tx| tx.execute_batch(write)).await.unwrap();
    }
}

const STEPS: usize = 6;

/// Migrations on one table, each of which alters it.
fn migrations() -> &'static [Migration] {
    let list = (0..STEPS).map(|n| {
        let sql = if n == 0 {
            "CREATE TABLE kodus_workflow.grown (made TIMESTAMPTZ DEFAULT now())".to_owned()
        } else {
            format!("ALTER TABLE kodus_workflow.grown ADD COLUMN c{n} TIMESTAMPTZ DEFAULT now()")
        };
        let (id, sql): (&str, &str) = (format!("{n:03}_step").leak(), sql.leak());
        Migration::fixed(id, "a step", sql, sql)
    });
    list.collect::<Vec<_>>().leak()
}

async fn migrate_for_ever(duck: Duck) {
    tell("open");
    migrate(&Database::Duck(duck), migrations()).await.unwrap();
    tell("migrated");
    std::thread::park();
}

#[tokio::test]
async fn a_migration_that_is_killed_is_finished_by_the_next() {
    for _ in 0..3 {
        let file = File::new();
        // Each time it may live a little longer, so that it comes to its end.
        for kills in 1.. {
            let told = killed("migrate", &file.path(), Duration::from_millis(20) * kills);
            if told.contains(&"migrated".into()) {
                break;
            }
        }
        let duck = file.open();
        let sql = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'grown'";
        let count = move |c: &Connection| c.query_row(sql, [], |row| row.get::<_, usize>(0));
        assert_eq!(duck.read("count the columns", count).await.unwrap(), STEPS);
        let applied = migrate(&Database::Duck(duck), migrations()).await.unwrap();
        assert!(applied.is_empty(), "{applied:?} was not recorded");
    }
}

/// Numbers from sixteen tasks, each with a row of 4 KB and a step of one counter.
async fn commit_for_ever(duck: Duck, with_readers: bool) {
    let make = "CREATE TABLE IF NOT EXISTS numbers (n BIGINT, body TEXT);
                CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, n BIGINT);
                INSERT INTO counters VALUES ('numbers', 0) ON CONFLICT DO NOTHING";
    duck.write("make the tables", move |tx| tx.execute_batch(make)).await.unwrap();
    for _ in 0..if with_readers { 2 } else { 0 } {
        let duck = duck.clone();
        tokio::spawn(async move {
            let sql = "SELECT count(DISTINCT body) FROM numbers";
            let read = move |c: &Connection| c.query_row(sql, [], |row| row.get::<_, i64>(0));
            while duck.read("read while others write", read).await.is_ok() {}
        });
    }
    futures_util::future::join_all((0..16).map(async |_| {
        loop {
            let n = duck.next_sequence();
            let body = format!("{n:04096}");
            let job = move |tx: &Connection| {
                let step = "UPDATE counters SET n = n + 1 WHERE name = 'numbers'";
                tx.prepare_cached(step)?.execute([])?;
                let insert = "INSERT INTO numbers VALUES ($1, $2)";
                tx.prepare_cached(insert)?.execute(params![n, body])
            };
            duck.write("store a number", job).await.unwrap();
            tell(n);
        }
    }))
    .await;
}

/// How often each number is stored, and what the counter says.
fn numbers(connection: &Connection) -> lavra_db::duckdb::Result<(BTreeMap<i64, i64>, i64)> {
    let mut statement = connection.prepare("SELECT n, count(*) FROM numbers GROUP BY n")?;
    let stored = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let stored = stored.collect::<lavra_db::duckdb::Result<_>>()?;
    let counter = connection.query_row("SELECT n FROM counters", [], |row| row.get(0))?;
    Ok((stored, counter))
}

async fn rounds_of_kills(role: &str, rounds: usize) {
    let file = File::new();
    let mut acknowledged: Vec<i64> = Vec::new();
    for round in 0..rounds {
        let told = killed(role, &file.path(), Duration::from_millis(120));
        acknowledged.extend(told.iter().map(|number| number.parse::<i64>().unwrap()));
        let duck = open_with_short_log(&file.path());
        assert_eq!(duck.set_aside(), None, "in round {round}");
        let (stored, counter) = duck.read("read the numbers", numbers).await.unwrap();
        let lost: Vec<_> = acknowledged.iter().filter(|n| !stored.contains_key(n)).collect();
        assert!(lost.is_empty(), "acknowledged and lost in round {round}: {lost:?}");
        let twice: Vec<_> = stored.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "stored twice in round {round}: {twice:?}");
        assert_eq!(counter, stored.len() as i64, "half a transaction in round {round}");
    }
    assert!(acknowledged.len() > rounds, "too little was written to prove anything");
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_kill() {
    rounds_of_kills("commit", 12).await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_kill_while_others_read() {
    rounds_of_kills("commit while others read", 12).await;
}
