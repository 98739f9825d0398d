//! The PostgreSQL schema as its own catalog shows it, held to the rules of a database linter: keys
//! that are covered, nothing kept twice, nothing that depends on who calls.

use lavra_db::tokio_postgres::Client;

use lavra_tasks::MIGRATIONS;
use lavra_testkit::{POSTGRES, Server};

const LINTS: [(&str, &str); 5] = [
    (
        "without a primary key",
        "SELECT c.oid::regclass::text FROM ours c
         WHERE NOT EXISTS (SELECT 1 FROM pg_constraint k
                           WHERE k.conrelid = c.oid AND k.contype = 'p')",
    ),
    (
        "a foreign key that no index covers",
        // The first columns of a whole index, in any order.
        "SELECT format('%s %s', c.oid::regclass, k.conname)
         FROM ours c JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'f'
         WHERE NOT EXISTS (
             SELECT 1 FROM pg_index i
             WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL
               AND (i.indkey::int2[])[0 : cardinality(k.conkey) - 1] @> k.conkey)",
    ),
    (
        "the same index twice",
        // All of the definition but its name.
        "SELECT string_agg(i.indexrelid::regclass::text, ' ' ORDER BY i.indexrelid::regclass::text)
         FROM ours c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid
         GROUP BY c.oid, x.relam, i.indkey::text, i.indclass::text, i.indoption::text,
                  i.indcollation::text, pg_get_expr(i.indexprs, i.indrelid),
                  pg_get_expr(i.indpred, i.indrelid)
         HAVING count(*) > 1",
    ),
    (
        "without row level security",
        "SELECT c.oid::regclass::text FROM ours c WHERE NOT c.relrowsecurity",
    ),
    (
        "a function whose search_path is its caller's",
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN schemas n ON n.oid = p.pronamespace
         WHERE NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) setting
                           WHERE setting LIKE 'search_path=%')",
    ),
];

/// What each rule finds in our schemas, one line each.
async fn findings(client: &Client) -> Vec<String> {
    let mut all = Vec::new();
    for (rule, sql) in LINTS {
        let sql = format!(
            "WITH schemas AS (
                 SELECT oid FROM pg_namespace WHERE nspname IN ('kodus_workflow', 'lavra')
             ), ours AS (
                 SELECT c.* FROM pg_class c JOIN schemas n ON n.oid = c.relnamespace
                 WHERE c.relkind IN ('r', 'p')
             ) {sql} ORDER BY 1"
        );
        let found = client.query_typed(&sql, &[]).await.unwrap();
        all.extend(found.iter().map(|row| format!("{rule}: {}", row.get::<_, String>(0))));
    }
    all
}

#[tokio::test]
async fn the_schema_breaks_no_rule() {
    let server = Server::create(POSTGRES, MIGRATIONS).await;
    let found = findings(&server.client().await).await;
    assert!(found.is_empty(), "{found:#?}");
}

#[tokio::test]
async fn each_rule_finds_what_breaks_it() {
    let server = Server::create(POSTGRES, MIGRATIONS).await;
    let client = server.client().await;
    client
        .batch_execute(
            "CREATE TABLE kodus_workflow.bare (
                 task UUID REFERENCES kodus_workflow.tasks(id), other INTEGER);
             CREATE INDEX bare_first ON kodus_workflow.bare (other, task);
             CREATE INDEX bare_again ON kodus_workflow.bare (other, task);
             CREATE INDEX bare_desc ON kodus_workflow.bare (other, task DESC);
             CREATE INDEX bare_some ON kodus_workflow.bare (task) WHERE other > 1;
             CREATE FUNCTION lavra.loose() RETURNS INTEGER LANGUAGE sql AS 'SELECT 1';
             CREATE FUNCTION lavra.fixed() RETURNS INTEGER LANGUAGE sql SET search_path = ''
                 AS 'SELECT 1';",
        )
        .await
        .unwrap();
    let expected = [
        "without a primary key: kodus_workflow.bare",
        "a foreign key that no index covers: kodus_workflow.bare bare_task_fkey",
        "the same index twice: kodus_workflow.bare_again kodus_workflow.bare_first",
        "without row level security: kodus_workflow.bare",
        "a function whose search_path is its caller's: lavra.loose()",
    ];
    assert_eq!(findings(&client).await, expected);
}
