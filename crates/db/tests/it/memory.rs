//! DuckDB begins with little memory and gets what it needs.

use lavra_db::duckdb::params;
use lavra_db::{Duck, DuckOptions, Schema};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_does_not_fit_gets_the_memory_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.duckdb");
    // The log is never folded, so that all that is written stays in memory.
    let options =
        DuckOptions { memory_mb: 8, checkpoint_mb: 4096, threads: Some(1), ..Default::default() };
    let duck = Duck::open(&path, Schema::default(), options).unwrap();
    let make = "CREATE TABLE pages (n INTEGER, body VARCHAR)";
    duck.write("make the table", move |tx| tx.execute_batch(make)).await.unwrap();
    let mut stored = 0;
    for batch in 0..20 {
        let write = move |tx: &lavra_db::duckdb::Connection| {
            let mut appender = tx.appender_to_db("pages", "main")?;
            for n in 0..20 {
                let n = batch * 20 + n;
                appender.append_row(params![n, format!("{n}-").repeat(30_000)])?;
            }
            appender.flush()?;
            Ok(20)
        };
        stored += duck.write("store pages", write).await.unwrap();
    }
    let count = |connection: &lavra_db::duckdb::Connection| {
        let sql = "SELECT count(*), current_setting('memory_limit') FROM pages";
        connection.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
    };
    let (count, limit) = duck.read("count", count).await.unwrap();
    assert_eq!(count, stored);
    assert_ne!(limit, "7.6 MiB", "it was enough");
}
