//! The tables.

use lavra_testkit::{POSTGRES, Server};

use crate::support::{World, migrations, on_each_engine};

on_each_engine!(the_text_can_be_run_again);

async fn the_text_can_be_run_again(world: World) {
    let webhook = world.webhook("ops", "https://example.com/x", &[]).await;
    for migration in lavra_notify::MIGRATIONS {
        let text = match &world.database {
            lavra_db::Database::Duck(_) => &migration.duckdb,
            lavra_db::Database::Postgres(_) => &migration.postgres,
        };
        for statement in text.split(";\n").filter(|part| !part.trim().is_empty()) {
            world.execute(statement).await;
        }
    }
    assert_eq!(world.webhooks.list().await.unwrap(), [webhook]);
}

#[tokio::test]
async fn no_data_api_shows_them() {
    let server = Server::create(POSTGRES, &migrations()).await;
    let client = server.client().await;
    let sql = "SELECT c.relname, c.relrowsecurity,
                      EXISTS (SELECT 1 FROM pg_constraint k
                              WHERE k.conrelid = c.oid AND k.contype = 'p'),
                      has_schema_privilege('public', c.relnamespace, 'USAGE')
               FROM pg_class c WHERE c.relkind = 'r' AND c.relname LIKE 'webhook%'
               ORDER BY c.relname";
    let rows = client.query_typed(sql, &[]).await.unwrap();
    let found: Vec<(String, bool, bool, bool)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    let names = ["webhook_position", "webhook_told", "webhooks"];
    assert_eq!(found, names.map(|name| (name.to_owned(), true, true, false)));
}
