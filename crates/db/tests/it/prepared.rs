//! A statement that was prepared before the rows came sees them as they are.

use lavra_db::Duck;
use lavra_db::duckdb::Connection;

use crate::support::place::File;

/// Shapes of queries whose plans could remember what the columns held when they were prepared.
const QUERIES: [&str; 9] = [
    "SELECT name || ' ' || payload || ' ' || coalesce(n, 0) FROM s ORDER BY name",
    "SELECT count(*)::VARCHAR FROM s WHERE state = 'X'",
    "SELECT coalesce(max(n), -1)::VARCHAR || max(payload) FROM s WHERE n > 1",
    "SELECT coalesce(state, '?') || count(*) FROM s GROUP BY state ORDER BY state NULLS LAST",
    "SELECT s.name || t.n FROM s JOIN s t ON s.n = t.n ORDER BY s.name",
    "SELECT n::VARCHAR FROM s WHERE n IS NOT NULL AND state IS NOT NULL ORDER BY n DESC LIMIT 3",
    "SELECT DISTINCT state || n FROM s ORDER BY 1",
    "SELECT count(*)::VARCHAR FROM s WHERE n BETWEEN 3 AND 600000000000",
    "SELECT name FROM s WHERE state IS NULL ORDER BY name",
];

const CHANGES: [&str; 6] = [
    "INSERT INTO s VALUES ('cleanup', '{}', 5, 'A')",
    "INSERT INTO s VALUES ('a longer name than before', '{\"a\": 12345678901234567890}', 500000000000, 'X')",
    "INSERT INTO s VALUES ('zz', '{}', NULL, NULL)",
    "UPDATE s SET state = 'X'",
    "UPDATE s SET payload = '{\"text\": \"' || repeat('long ', 2000) || '\"}' WHERE name = 'zz'",
    "DELETE FROM s WHERE name = 'cleanup'",
];

async fn ask(duck: &Duck, sql: &'static str, is_kept: bool) -> Vec<Option<String>> {
    let read = move |c: &Connection| {
        if is_kept {
            let mut statement = c.prepare_cached(sql)?;
            statement.query_map([], |row| row.get(0))?.collect()
        } else {
            c.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        }
    };
    duck.read("ask", read).await.unwrap()
}

#[tokio::test]
async fn a_kept_statement_answers_like_a_fresh_one() {
    let file = File::new();
    let duck = file.open();
    let table =
        "CREATE TABLE s (name VARCHAR PRIMARY KEY, payload JSON NOT NULL, n BIGINT, state VARCHAR)";
    duck.write("make a table", move |tx| tx.execute_batch(table)).await.unwrap();
    for query in QUERIES {
        ask(&duck, query, true).await;
    }
    for change in CHANGES {
        duck.write("change it", move |tx| tx.execute_batch(change)).await.unwrap();
        for query in QUERIES {
            let (kept, fresh) = (ask(&duck, query, true).await, ask(&duck, query, false).await);
            assert_eq!(kept, fresh, "after {change}: {query}");
        }
    }
}
