//! What `pg_catalog` says of a table, and making one.

use async_trait::async_trait;
use lavra_db::Error;
use lavra_db::tokio_postgres::error::SqlState;
use lavra_db::tokio_postgres::types::Type;

use super::Postgres;
use super::jobs::get;
use crate::failure::Failure;
use crate::infer::{Kind, Shape, is_plain};
use crate::order::{Destination, Operation};
use crate::store::{Look, OF_THE_FLEET, Tables, no_key, no_schema, refusal};
use crate::table::{Check, Column, Sameness, Table, places, quote};

const RELATION: &str = "SELECT c.oid, c.relkind::text AS relkind,
        quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS quoted,
        NOT c.relhasrules AND NOT pg_catalog.row_security_active(c.oid) AS takes_copies,
        (SELECT count(*) FROM pg_catalog.pg_index AS i
         WHERE i.indrelid = c.oid AND (i.indisunique OR i.indisexclusion)) AS keys
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2";

/// What is upserted comes again. With room for its next version beside it a row changes without an entry
/// in any index, in half the time, and a table that was written twice is as large with it as without.
const ROOM_TO_CHANGE: &str = " WITH (fillfactor = 50)";

/// Those that can be written: neither generated nor numbered by the server alone. Types by their schema and
/// name, which mean the same wherever `search_path` points.
const COLUMNS: &str = "SELECT a.attname::text AS name, quote_ident(a.attname) AS quoted,
        quote_ident(n.nspname) || '.' || quote_ident(t.typname) AS kind,
        t.typname IN ('json', 'jsonb') AND n.nspname = 'pg_catalog' AS is_json,
        t.typcategory IN ('A', 'C') AS is_list, a.attnotnull AND NOT a.atthasdef AS is_required,
        coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') ~* '^(now\\(\\)|current_timestamp)'
            AS is_now,
        coalesce(l.collisdeterministic, true) AS is_deterministic
    FROM pg_catalog.pg_attribute AS a
    JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation
    LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attgenerated = '' AND a.attidentity <> 'a'
    ORDER BY a.attnum";

/// Indexes that a conflict can be told by: whole, valid, of plain columns.
const KEYS: &str = "SELECT ARRAY(
        SELECT a.attname::text FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = i.indrelid
          AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
    ) AS names
    FROM pg_catalog.pg_index AS i
    WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL";

/// Conditions on the columns of a row, each with their names.
const CHECKS: &str = "SELECT pg_catalog.pg_get_expr(k.conbin, k.conrelid) AS condition, ARRAY(
        SELECT a.attname::text FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
    ) AS names
    FROM pg_catalog.pg_constraint AS k
    WHERE k.conrelid = $1 AND k.contype = 'c' AND cardinality(k.conkey) > 0 AND NOT 0 = ANY (k.conkey)";

#[async_trait]
impl Tables for Postgres {
    async fn look(&self, destination: &Destination) -> Result<Look, Failure> {
        let operation = "look the table up";
        if let Some(failure) = refusal(destination, self.pg.schema().name(), &self.tables) {
            return Err(failure);
        }
        let Destination { schema, table, .. } = destination;
        let names = [(schema as _, Type::TEXT), (table as _, Type::TEXT)];
        let rows = self.pg.query(operation, RELATION, &names).await?;
        let Some(row) = rows.first() else { return Ok(Look::Missing) };
        if !matches!(get::<String>(row, "relkind")?.as_str(), "r" | "p") {
            return Err(Failure::schema(format!("{schema}.{table} is not a table")));
        }
        if schema == "public" && OF_THE_FLEET.contains(&table.as_str()) && self.has_fleet().await? {
            return Err(Failure::schema(format!("{schema}.{table} is not for data")));
        }
        let oid = [(&get::<u32>(row, "oid")? as _, Type::OID)];
        let mut columns = Vec::new();
        for row in self.pg.query(operation, COLUMNS, &oid).await? {
            let kind: String = get(&row, "kind")?;
            columns.push(Column {
                name: get(&row, "name")?,
                quoted: get(&row, "quoted")?,
                sameness: sameness(&kind, get(&row, "is_deterministic")?),
                kind,
                is_json: get(&row, "is_json")?,
                is_list: get(&row, "is_list")?,
                is_required: get(&row, "is_required")?,
                is_now: get(&row, "is_now")?,
                default: None,
            });
        }
        if !destination.conflict_key.is_empty() {
            let mut wanted = destination.conflict_key.clone();
            wanted.sort_unstable();
            let mut is_unique = false;
            for row in self.pg.query(operation, KEYS, &oid).await? {
                let mut names: Vec<String> = get(&row, "names")?;
                names.sort_unstable();
                is_unique |= names == wanted;
            }
            if !is_unique {
                return Err(no_key(destination));
            }
        }
        let quoted = get(row, "quoted")?;
        let table = Table::new(quoted, columns, destination);
        let mut table = table.ok_or_else(|| no_key(destination))?;
        for row in self.pg.query(operation, CHECKS, &oid).await? {
            let names: Vec<String> = get(&row, "names")?;
            // One on a column that the server fills is not for us to look at.
            if let Some(columns) = places(&table.columns, &names) {
                table.demands.checks.push(Check { condition: get(&row, "condition")?, columns });
            }
        }
        table.takes_copies = get(row, "takes_copies")?;
        table.has_other_keys = get::<i64>(row, "keys")? > i64::from(!table.key.is_empty());
        Ok(Look::Table(table))
    }

    async fn create(&self, destination: &Destination, shape: &Shape) -> Result<(), Failure> {
        let Destination { schema, table, operation, conflict_key, .. } = destination;
        if !is_plain(table) {
            let text = "a table is only made with a name of letters, digits and underscores";
            return Err(Failure::schema(text));
        }
        let sql =
            "SELECT quote_ident(nspname) AS quoted FROM pg_catalog.pg_namespace WHERE nspname = $1";
        let rows = self.pg.query("look the schema up", sql, &[(schema as _, Type::TEXT)]).await?;
        let Some(row) = rows.first() else {
            return Err(no_schema(schema));
        };
        let name = format!("{}.{}", get::<String>(row, "quoted")?, quote(table));
        let columns =
            shape.columns.iter().map(|(name, kind)| format!("{} {}", quote(name), type_of(*kind)));
        let mut parts: Vec<String> = columns.collect();
        if !conflict_key.is_empty() {
            let key: Vec<String> = conflict_key.iter().map(|name| quote(name)).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        let room = match operation {
            Operation::Upsert => ROOM_TO_CHANGE,
            Operation::Insert => "",
        };
        let sql = format!("CREATE TABLE IF NOT EXISTS {name} ({}){room}", parts.join(", "));
        let mut transaction = self.pg.transaction("make the table").await?;
        if let Err(error) = transaction.query(&sql, &[]).await {
            let _already_gone = transaction.rollback().await;
            // Who waits for another one that makes the same table is told that its name is taken.
            return if is_taken(&error) { Ok(()) } else { Err(error.into()) };
        }
        transaction.finish(&format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"), &[]).await?;
        Ok(())
    }
}

impl Postgres {
    async fn has_fleet(&self) -> Result<bool, Failure> {
        let sql = "SELECT 1 FROM kodus_workflow.schema_migrations WHERE id = 'fleet:001'";
        Ok(!self.pg.query("look for a fleet", sql, &[]).await?.is_empty())
    }
}

fn is_taken(error: &Error) -> bool {
    let Error::Postgres { source, .. } = error else { return false };
    source.code().is_some_and(|state| {
        [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT]
            .contains(state)
    })
}

/// The name of a type of PostgreSQL's own, which may be a word that has to be quoted; nothing for others.
pub(super) fn own_type(kind: &str) -> &str {
    kind.strip_prefix("pg_catalog.").unwrap_or_default().trim_matches('"')
}

fn sameness(kind: &str, is_deterministic: bool) -> Sameness {
    match own_type(kind) {
        "text" | "varchar" if is_deterministic => Sameness::Text,
        "int2" | "int4" | "int8" => Sameness::Integer,
        "uuid" => Sameness::Uuid,
        "date" => Sameness::Date,
        _ => Sameness::Unknown,
    }
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Boolean => "boolean",
        Kind::Integer => "bigint",
        Kind::Number(_) => "numeric",
        Kind::Text => "text",
        Kind::Json => "jsonb",
    }
}
