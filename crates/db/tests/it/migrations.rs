//! Migrations: from nothing, again, many at once, and when someone newer was here.

use std::collections::BTreeMap;

use lavra_db::{Database, Error, GROUND, Migration, Pg, Schema, migrate, print_migrations};

use crate::support::place::{PATIENCE, Place, Server, on_each_engine};

const FIRST: Migration = Migration::fixed(
    "001_first",
    "a table that isn't there yet",
    "CREATE TABLE kodus_workflow.things (id UUID PRIMARY KEY, name TEXT NOT NULL);
               ALTER TABLE kodus_workflow.things ENABLE ROW LEVEL SECURITY;",
    "CREATE TABLE kodus_workflow.things (id UUID PRIMARY KEY, name TEXT NOT NULL)",
);
const SECOND: Migration = Migration::fixed(
    "002_second",
    "one more column",
    "ALTER TABLE kodus_workflow.things ADD COLUMN made TIMESTAMPTZ DEFAULT now()",
    "ALTER TABLE kodus_workflow.things ADD COLUMN made TIMESTAMPTZ DEFAULT now()",
);
const BROKEN: Migration = Migration::fixed(
    "003_broken",
    "half of it works",
    "CREATE TABLE kodus_workflow.half (n INT); SELECT 1 FROM nowhere",
    "CREATE TABLE kodus_workflow.half (n INT); SELECT 1 FROM nowhere",
);
const OLDER: &[Migration] = &[GROUND, FIRST];
const ALL: &[Migration] = &[GROUND, FIRST, SECOND];
const WITH_A_BROKEN_ONE: &[Migration] = &[GROUND, FIRST, BROKEN];
const IDS: [&str; 3] = ["000_ground", "001_first", "002_second"];

on_each_engine!(
    from_nothing_and_then_there_is_nothing_to_do,
    an_older_database_gets_what_it_lacks,
    a_newer_database_is_left_alone,
    another_schema_has_everything_of_its_own,
    a_migration_that_fails_is_named_and_leaves_nothing_behind,
    each_series_is_a_list_of_its_own,
);

async fn run(database: &Database, sql: &'static str) {
    match database {
        Database::Duck(duck) => {
            let sql = duck.sql(sql);
            duck.write("change a row", move |tx| tx.execute_batch(&sql)).await.unwrap();
        }
        Database::Postgres(pg) => drop(pg.query("change a row", sql, &[]).await.unwrap()),
    }
}

async fn strings(database: &Database, sql: &'static str) -> Vec<String> {
    match database {
        Database::Duck(duck) => {
            let sql = duck.sql(sql);
            let read = move |c: &lavra_db::duckdb::Connection| {
                c.prepare(&sql)?.query_map([], |row| row.get(0))?.collect()
            };
            duck.read("read strings", read).await.unwrap()
        }
        Database::Postgres(pg) => {
            let rows = pg.query("read strings", sql, &[]).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        }
    }
}

async fn recorded(database: &Database) -> Vec<String> {
    strings(database, "SELECT id FROM kodus_workflow.schema_migrations ORDER BY id").await
}

async fn from_nothing_and_then_there_is_nothing_to_do(place: Place) {
    let database = place.open(Schema::default()).await;
    assert_eq!(migrate(&database, ALL).await.unwrap(), IDS);
    assert_eq!(recorded(&database).await, IDS);
    assert!(migrate(&database, ALL).await.unwrap().is_empty());
    drop(database);
    let again = place.open(Schema::default()).await;
    assert!(migrate(&again, ALL).await.unwrap().is_empty());
}

async fn an_older_database_gets_what_it_lacks(place: Place) {
    let database = place.open(Schema::default()).await;
    assert_eq!(migrate(&database, OLDER).await.unwrap(), IDS[..2]);
    run(
        &database,
        "INSERT INTO kodus_workflow.things (id, name)
                    VALUES ('00000000-0000-0000-0000-000000000001', 'kept')",
    )
    .await;
    assert_eq!(migrate(&database, ALL).await.unwrap(), IDS[2..]);
    let kept = "SELECT name FROM kodus_workflow.things WHERE made IS NOT NULL";
    assert_eq!(strings(&database, kept).await, ["kept"]);
}

async fn a_newer_database_is_left_alone(place: Place) {
    let database = place.open(Schema::default()).await;
    migrate(&database, ALL).await.unwrap();
    // This version knows one migration less.
    let error = migrate(&database, OLDER).await.unwrap_err();
    assert!(matches!(&error, Error::Newer { id } if id == "002_second"), "{error:?}");
    assert!(!error.is_transient());
    assert_eq!(recorded(&database).await, IDS);
}

async fn another_schema_has_everything_of_its_own(place: Place) {
    let ours = place.open(Schema::default()).await;
    migrate(&ours, OLDER).await.unwrap();
    drop(ours);
    let theirs = place.open(Schema::parse("theirs").unwrap()).await;
    assert_eq!(migrate(&theirs, ALL).await.unwrap(), IDS);
    let tables = "SELECT table_schema || '.' || table_name FROM information_schema.tables
                  WHERE table_schema IN ('theirs', 'kodus' || '_workflow', 'lavra') ORDER BY 1";
    let expected = [
        "kodus_workflow.leases",
        "kodus_workflow.schema_migrations",
        "kodus_workflow.things",
        "lavra.secrets",
        "theirs.leases",
        "theirs.schema_migrations",
        "theirs.things",
    ];
    assert_eq!(strings(&theirs, tables).await, expected);
}

async fn a_migration_that_fails_is_named_and_leaves_nothing_behind(place: Place) {
    let database = place.open(Schema::default()).await;
    let error = migrate(&database, WITH_A_BROKEN_ONE).await.unwrap_err();
    assert!(error.to_string().starts_with("the migration 003_broken failed"), "{error}");
    let half = "SELECT table_name FROM information_schema.tables WHERE table_name = 'half'";
    assert!(strings(&database, half).await.is_empty(), "half a migration was kept");
    migrate(&database, OLDER).await.unwrap();
    assert_eq!(recorded(&database).await, IDS[..2]);
}

async fn eight_at_once(server: Server) {
    let migrators: Vec<_> = (0..8)
        .map(|_| {
            let url = server.url();
            tokio::spawn(async move {
                let pg = Pg::connect(&url, Schema::default(), PATIENCE).await.unwrap();
                migrate(&Database::Postgres(pg), ALL).await.unwrap()
            })
        })
        .collect();
    let mut times = BTreeMap::new();
    for migrator in migrators {
        for id in migrator.await.unwrap() {
            *times.entry(id).or_insert(0) += 1;
        }
    }
    assert_eq!(times, IDS.map(|id| (id.to_owned(), 1)).into_iter().collect());
}

#[tokio::test]
async fn eight_processes_that_start_at_once_apply_each_migration_once() {
    eight_at_once(Server::direct().await).await;
}

#[tokio::test]
async fn eight_processes_behind_pgbouncer_apply_each_migration_once() {
    eight_at_once(Server::pooled().await).await;
}

/// Tables, columns, constraints, indexes, row level security and rights, one line each.
async fn catalog(pg: &Pg) -> Vec<String> {
    let sql = "
        WITH ours AS (
            SELECT c.oid, c.relname, c.relrowsecurity, n.nspname, n.nspacl::text AS rights
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname IN ('theirs', 'lavra') AND c.relkind = 'r')
        SELECT concat_ws(' ', nspname, rights, relname, 'rls', relrowsecurity) FROM ours
        UNION ALL
        SELECT concat_ws(' ', nspname, relname, attnum, attname,
                         format_type(atttypid, atttypmod), attnotnull,
                         pg_get_expr(adbin, adrelid))
        FROM ours JOIN pg_attribute a ON attrelid = ours.oid AND attnum > 0
        LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
        UNION ALL
        SELECT concat_ws(' ', nspname, relname, conname, pg_get_constraintdef(k.oid))
        FROM ours JOIN pg_constraint k ON conrelid = ours.oid
        UNION ALL
        SELECT pg_get_indexdef(indexrelid) FROM ours JOIN pg_index ON indrelid = ours.oid
        UNION ALL
        SELECT concat_ws(' ', id, description) FROM theirs.schema_migrations
        ORDER BY 1";
    let rows = pg.query("read the catalog", sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn the_printed_script_makes_the_same_catalog() {
    let schema = Schema::parse("theirs").unwrap();
    let (printed, migrated) = (Server::direct().await, Server::direct().await);
    // That of an earlier version, the whole, and the whole again: only what is missing is applied.
    printed.execute(&print_migrations(OLDER, &schema)).await;
    printed.execute(&print_migrations(ALL, &schema)).await;
    printed.execute(&print_migrations(ALL, &schema)).await;
    let printed = Pg::connect(&printed.url(), schema.clone(), PATIENCE).await.unwrap();
    let migrated = Pg::connect(&migrated.url(), schema, PATIENCE).await.unwrap();
    assert_eq!(migrate(&Database::Postgres(migrated.clone()), ALL).await.unwrap(), IDS);
    let expected = catalog(&migrated).await;
    assert!(expected.len() > 20, "the catalog is too short: {expected:#?}");
    assert_eq!(catalog(&printed).await, expected);
    let applied = migrate(&Database::Postgres(printed), ALL).await.unwrap();
    assert!(applied.is_empty(), "the script did not record {applied:?}");
}

#[tokio::test]
async fn secrets_lie_in_a_schema_that_nobody_else_may_use() {
    let server = Server::direct().await;
    let pg = server.connect().await;
    migrate(&Database::Postgres(pg.clone()), ALL).await.unwrap();
    let sql = "SELECT has_schema_privilege('public', 'lavra', 'USAGE')
                   OR has_schema_privilege('public', 'lavra', 'CREATE'),
               (SELECT bool_and(relrowsecurity) FROM pg_class c
                JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE relkind = 'r' AND nspname IN ('lavra', 'kodus_workflow'))";
    let rows = pg.query("ask for rights", sql, &[]).await.unwrap();
    assert!(!rows[0].get::<_, bool>(0), "PUBLIC may use the schema of the secrets");
    assert!(rows[0].get::<_, bool>(1), "a table is without row level security");
}

async fn each_series_is_a_list_of_its_own(place: Place) {
    let step = |id: &'static str, table: &str| {
        let sql = format!("CREATE TABLE kodus_workflow.{table} (n INT)");
        let (postgres, duckdb) = (sql.clone().into(), sql.into());
        Migration { id: id.into(), description: "a table".into(), postgres, duckdb }
    };
    let (one, more) = (step("a:001", "of_a"), step("a:002", "more_of_a"));
    let database = place.open(Schema::default()).await;
    assert_eq!(migrate(&database, ALL).await.unwrap(), IDS);
    let series = [one.clone(), more];
    assert_eq!(migrate(&database, &series).await.unwrap(), ["a:001", "a:002"]);
    assert_eq!(migrate(&database, &[step("b:001", "of_b")]).await.unwrap(), ["b:001"]);
    assert!(migrate(&database, ALL).await.unwrap().is_empty(), "the others are not unknown to it");
    let error = migrate(&database, &[one]).await.unwrap_err();
    assert!(matches!(error, Error::Newer { id } if id == "a:002"));
}
