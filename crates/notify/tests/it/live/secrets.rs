//! What is secret stands nowhere.

use std::time::Duration;

use lavra_db::Database;

use crate::support::{Receiver, Running, SECRET, World, on_each_engine};

on_each_engine!(no_secret_stands_in_any_table);

/// Everything in every table, as text.
async fn dump(world: &World) -> String {
    let tables = "SELECT table_schema || '.' || table_name FROM information_schema.tables
                  WHERE table_schema IN ('kodus_workflow', 'lavra', 'public')
                    AND table_type = 'BASE TABLE' ORDER BY 1";
    let mut all = Vec::new();
    match &world.database {
        Database::Postgres(pg) => {
            for row in pg.query("dump", tables, &[]).await.unwrap() {
                let table: String = row.get(0);
                let rows = format!("SELECT to_jsonb(t)::text FROM {table} t");
                for row in pg.query("dump", &rows, &[]).await.unwrap() {
                    let text: String = row.get(0);
                    all.push(format!("{table} {text}"));
                }
            }
        }
        Database::Duck(duck) => {
            let read = move |connection: &lavra_db::duckdb::Connection| {
                let mut names = connection.prepare(tables)?;
                let names: Vec<String> =
                    names.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
                let mut all = Vec::new();
                for table in names {
                    let mut rows =
                        connection.prepare(&format!("SELECT t::VARCHAR FROM {table} t"))?;
                    let rows: Vec<String> =
                        rows.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
                    for row in rows {
                        all.push(format!("{table} {row}"));
                    }
                }
                Ok(all)
            };
            all = duck.read("dump", read).await.unwrap();
        }
    }
    all.join("\n")
}

async fn no_secret_stands_in_any_table(world: World) {
    let receiver = Receiver::start(&[500, 404, 204]).await;
    world.webhook("ops", &receiver.url, &[]).await;
    let running = Running::start(&world);
    world.mission_fails().await;
    world.mission_fails().await;
    let begun = std::time::Instant::now();
    while receiver.requests().len() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", receiver.requests());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.settled().await;
    running.stop().await;

    let all = dump(&world).await;
    assert!(all.contains("lavra.webhooks") && all.contains("lavra.secrets"), "{all}");
    assert!(all.contains("HTTP 404 Not Found") && all.contains("HTTP 500"), "{all}");
    // Paths and queries of addresses, the secret, and what a receiver says.
    for secret in ["path-s3cret", "query-s3cret", "body-s3cret", SECRET] {
        assert!(!all.contains(secret), "{secret} stands in a table");
    }
    let port = receiver.url.split(['/', ':']).nth(4).unwrap().to_owned();
    assert!(all.contains(&port), "the host is shown");
}
