//! The migration runner: ordered, embedded, idempotent, recorded in `schema_migrations`.
//!
//! Several processes may start at once. On PostgreSQL all of it is one transaction under a
//! transaction-level advisory lock (which a pooler in transaction mode keeps), and a database
//! that is up to date is left alone, so that no right to change the schema is needed then. On
//! DuckDB the owner of the file is alone, and all of it is one transaction between checkpoints.
//!
//! An id may begin with the name of a series and a colon (`pncp:001`). Each series is a list of its
//! own: what is unknown in another one says nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::types::Type;

use crate::{Database, Duck, Error, Pg, Result, Schema};

/// One step of the schema, for both engines.
#[derive(Clone, Debug)]
pub struct Migration {
    pub id: Cow<'static, str>,
    pub description: Cow<'static, str>,
    pub postgres: Cow<'static, str>,
    pub duckdb: Cow<'static, str>,
}

impl Migration {
    /// One that is known when the program is compiled.
    pub const fn fixed(
        id: &'static str,
        description: &'static str,
        postgres: &'static str,
        duckdb: &'static str,
    ) -> Self {
        Self {
            id: Cow::Borrowed(id),
            description: Cow::Borrowed(description),
            postgres: Cow::Borrowed(postgres),
            duckdb: Cow::Borrowed(duckdb),
        }
    }

    fn series(&self) -> &str {
        series(&self.id)
    }
}

fn series(id: &str) -> &str {
    id.split_once(':').map_or("", |(series, _)| series)
}

/// The ids that a call of [`migrate`] applied; empty when the database was up to date.
pub type Applied = Vec<String>;

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS kodus_workflow.schema_migrations (
    id VARCHAR(128) PRIMARY KEY,
    description TEXT NOT NULL,
    executed_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
)";
const READ: &str = "SELECT id FROM kodus_workflow.schema_migrations";
/// What a migration in a script stands between; no migration has it inside.
const QUOTE: &str = "lavra_migration";
/// Any constant will do, as long as every lavra uses the same.
const ADVISORY_LOCK: i64 = 0x006c_6176_7261;

pub async fn migrate(database: &Database, migrations: &[Migration]) -> Result<Applied> {
    match database {
        Database::Postgres(pg) => on_postgres(pg, migrations).await,
        Database::Duck(duck) => on_duckdb(duck, migrations).await,
    }
}

/// The ids that [`migrate`] would apply; nothing is changed.
pub async fn unapplied(database: &Database, migrations: &[Migration]) -> Result<Vec<String>> {
    let recorded = match database {
        Database::Postgres(pg) => recorded_on_postgres(pg).await?,
        Database::Duck(duck) => recorded_on_duckdb(duck).await?,
    };
    let missing = missing(migrations, &recorded.unwrap_or_default())?;
    Ok(missing.iter().map(|migration| migration.id.to_string()).collect())
}

/// The whole schema as a script for Terraform, Liquibase, Supabase or psql. Each migration asks first
/// whether it is recorded, so that the script can be applied again, also that of a later version.
pub fn print(migrations: &[Migration], schema: &Schema) -> String {
    let mut script = format!("BEGIN;\n\nCREATE SCHEMA IF NOT EXISTS {schema};\n\n");
    let _infallible = write!(
        script,
        "{};\nALTER TABLE {schema}.schema_migrations ENABLE ROW LEVEL SECURITY;\n",
        schema.apply(LEDGER)
    );
    for migration in migrations {
        let sql = schema.apply(&migration.postgres);
        let sql = sql.trim();
        let end = if sql.ends_with(';') { "" } else { "\n;" };
        let (id, description) = (&migration.id, &migration.description);
        let quoted = description.replace('\'', "''");
        let _infallible = write!(
            script,
            "\n-- {id}: {description}\n\n\
             DO ${QUOTE}$ BEGIN\n\
             IF EXISTS (SELECT FROM {schema}.schema_migrations WHERE id = '{id}') THEN RETURN; END IF;\n\n\
             {sql}{end}\n\n\
             INSERT INTO {schema}.schema_migrations (id, description)\nVALUES ('{id}', '{quoted}');\n\
             END ${QUOTE}$;\n",
        );
    }
    script.push_str("\nCOMMIT;\n");
    script
}

/// What is still to be applied; an id that we do not know means a newer lavra was here.
fn missing<'m>(
    migrations: &'m [Migration],
    applied: &BTreeSet<String>,
) -> Result<Vec<&'m Migration>> {
    let is_ours = |id: &str| migrations.iter().any(|m| m.series() == series(id));
    let is_known = |id: &str| migrations.iter().any(|m| m.id == id);
    let unknown = applied.iter().find(|id| is_ours(id) && !is_known(id));
    match unknown {
        Some(id) => Err(Error::Newer { id: id.clone() }),
        None => Ok(migrations.iter().filter(|m| !applied.contains(&*m.id)).collect()),
    }
}

fn at(migration: &Migration, error: Error) -> Error {
    Error::Migration { id: migration.id.to_string(), source: Box::new(error) }
}

/// What is recorded, or `None` where there is no record.
async fn recorded_on_postgres(pg: &Pg) -> Result<Option<BTreeSet<String>>> {
    let operation = "read which migrations were applied";
    let ledger = format!("{}.schema_migrations", pg.schema());
    let exists = pg
        .query(operation, "SELECT to_regclass($1) IS NOT NULL", &[(&ledger as _, Type::TEXT)])
        .await?;
    if !exists.first().is_some_and(|row| row.get(0)) {
        return Ok(None);
    }
    let rows = pg.query(operation, READ, &[]).await?;
    let recorded = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
    recorded.map(Some).map_err(|source| Error::Postgres { operation, source })
}

async fn on_postgres(pg: &Pg, migrations: &[Migration]) -> Result<Applied> {
    let operation = "migrate the database";
    let failed = |source| Error::Postgres { operation, source };
    if let Some(recorded) = recorded_on_postgres(pg).await?
        && missing(migrations, &recorded)?.is_empty()
    {
        return Ok(Vec::new());
    }

    let mut client = pg.client().await?;
    let transaction = client.transaction().await.map_err(failed)?;
    let lock = [(&ADVISORY_LOCK as _, Type::INT8)];
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &lock).await.map_err(failed)?;
    let ground = format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; {};
         ALTER TABLE {schema}.schema_migrations ENABLE ROW LEVEL SECURITY;",
        pg.schema().apply(LEDGER),
        schema = pg.schema(),
    );
    transaction.batch_execute(&ground).await.map_err(failed)?;
    let rows = transaction.query_typed(&pg.schema().apply(READ), &[]).await.map_err(failed)?;
    let applied = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
    let mut done = Vec::new();
    for migration in missing(migrations, &applied.map_err(failed)?)? {
        let sql = pg.schema().apply(&migration.postgres);
        let applied = transaction.batch_execute(&sql).await;
        applied.map_err(|source| at(migration, failed(source)))?;
        let record = pg.schema().apply(
            "INSERT INTO kodus_workflow.schema_migrations (id, description) VALUES ($1, $2)",
        );
        let params = [(&migration.id as _, Type::TEXT), (&migration.description as _, Type::TEXT)];
        transaction.query_typed(&record, &params).await.map_err(failed)?;
        done.push(migration.id.to_string());
    }
    transaction.commit().await.map_err(failed)?;
    Ok(done)
}

async fn recorded_on_duckdb(duck: &Duck) -> Result<Option<BTreeSet<String>>> {
    let operation = "read which migrations were applied";
    let exists_in = duck.schema().name().to_owned();
    let exists: bool = duck
        .read(operation, move |connection| {
            // `information_schema` would tell the same, in five times the time.
            let sql = "SELECT count(*) > 0 FROM duckdb_tables()
                       WHERE database_name = current_database() AND schema_name = $1
                         AND table_name = 'schema_migrations'";
            connection.query_row(sql, [exists_in], |row| row.get(0))
        })
        .await?;
    if !exists {
        return Ok(None);
    }
    let read = duck.sql(READ);
    let job = move |connection: &duckdb::Connection| {
        let mut statement = connection.prepare(&read)?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    duck.read(operation, job).await.map(Some)
}

async fn on_duckdb(duck: &Duck, migrations: &[Migration]) -> Result<Applied> {
    let schema = duck.schema().clone();
    let recorded = recorded_on_duckdb(duck).await?;
    let exists = recorded.is_some();
    let missing = missing(migrations, &recorded.unwrap_or_default())?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let record = duck.sql(
        "INSERT INTO kodus_workflow.schema_migrations (id, description, executed_at)
         VALUES ($1, $2, make_timestamp($3))",
    );
    let now = crate::micros(duck.clock().now());
    let steps: Vec<_> = missing
        .iter()
        .map(|m| {
            (m.id.to_string(), m.description.to_string(), schema.apply(&m.duckdb).into_owned())
        })
        .collect();
    let reached = Arc::new(AtomicUsize::new(0));
    let at_step = Arc::clone(&reached);
    let ground = format!("CREATE SCHEMA IF NOT EXISTS {schema}; {};", schema.apply(LEDGER));
    duck.reshape(move |connection| {
        if !exists {
            connection.execute_batch(&ground)?;
        }
        for (_, _, sql) in &steps {
            connection.execute_batch(sql)?;
            at_step.fetch_add(1, Ordering::Relaxed);
        }
        // At the end: each change of the schema would have it planned anew.
        let mut record = connection.prepare(&record)?;
        for (id, description, _) in &steps {
            record.execute(duckdb::params![id, description, now])?;
        }
        Ok(())
    })
    .await
    .map_err(|error| match missing.get(reached.load(Ordering::Relaxed)) {
        Some(migration) => at(migration, error),
        None => error,
    })?;
    Ok(missing.iter().map(|m| m.id.to_string()).collect())
}
