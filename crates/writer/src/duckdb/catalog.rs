//! What DuckDB's catalog says of a table, and making one.

use async_trait::async_trait;
use lavra_db::duckdb::{self, Connection};

use super::DuckDb;
use crate::failure::Failure;
use crate::infer::{Digits, Kind, Shape, is_plain};
use crate::order::Destination;
use crate::store::{Look, OF_THE_FLEET, Tables, no_key, no_schema, refusal};
use crate::table::{Check, Column, Demands, Sameness, Table, places, quote};

const KIND: &str = "SELECT table_type FROM information_schema.tables
    WHERE table_catalog = current_database() AND table_schema = $1 AND table_name = $2";
const COLUMNS: &str = "SELECT column_name, data_type, is_nullable, coalesce(column_default, '')
    FROM duckdb_columns()
    WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2
    ORDER BY column_index";
const KEYS: &str = "SELECT CAST(to_json(constraint_column_names) AS VARCHAR)
    FROM duckdb_constraints()
    WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2
      AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')";
const INDEXES: &str = "SELECT expressions FROM duckdb_indexes()
    WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2 AND is_unique";
const CHECKS: &str = "SELECT expression, CAST(to_json(constraint_column_names) AS VARCHAR)
    FROM duckdb_constraints()
    WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2
      AND constraint_type = 'CHECK'";
const DEFINITION: &str = "SELECT sql FROM duckdb_tables()
    WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2";

/// What was found of a table.
struct Found {
    kind: Option<String>,
    columns: Vec<(String, String, bool, String)>,
    keys: Vec<Vec<String>>,
    /// Conditions, and the columns in them.
    checks: Vec<(String, Vec<String>)>,
    definition: String,
    has_fleet: bool,
}

#[async_trait]
impl Tables for DuckDb {
    async fn look(&self, destination: &Destination) -> Result<Look, Failure> {
        if let Some(failure) = refusal(destination, self.duck.schema().name(), &self.tables) {
            return Err(failure);
        }
        let Destination { schema, table, .. } = destination;
        let found = self.find(schema.clone(), table.clone()).await?;
        match found.kind.as_deref() {
            None => return Ok(Look::Missing),
            Some("BASE TABLE") => {}
            Some(_) => return Err(Failure::schema(format!("{schema}.{table} is not a table"))),
        }
        if schema == "public" && OF_THE_FLEET.contains(&table.as_str()) && found.has_fleet {
            return Err(Failure::schema(format!("{schema}.{table} is not for data")));
        }
        if !destination.conflict_key.is_empty() {
            let sorted = |names: &[String]| {
                let mut names = names.to_vec();
                names.sort_unstable();
                names
            };
            if !found.keys.iter().any(|key| sorted(key) == sorted(&destination.conflict_key)) {
                return Err(no_key(destination));
            }
        }
        let generated = generated(&found.definition, &found.columns);
        let written = found.columns.into_iter().filter(|(name, ..)| !generated.contains(name));
        let columns = written.map(|(name, kind, is_nullable, default)| Column {
            quoted: quote(&name),
            name,
            is_json: kind == "JSON",
            is_list: is_nested(&kind),
            is_required: !is_nullable && default.is_empty(),
            is_now: ["now()", "current_timestamp", "get_current_timestamp()"]
                .iter()
                .any(|now| default.to_ascii_lowercase().contains(now)),
            sameness: sameness(&kind),
            // A look takes no number of a sequence.
            default: (!default.is_empty() && !default.contains("nextval")).then_some(default),
            kind,
        });
        let quoted = format!("{}.{}", quote(schema), quote(table));
        let mut table = Table::new(quoted, columns.collect(), destination)
            .ok_or_else(|| no_key(destination))?;
        // Those of columns that are computed are left to the table.
        let unique = found.keys.iter().filter_map(|key| places(&table.columns, key)).collect();
        let checks = found.checks.into_iter().filter_map(|(condition, names)| {
            Some(Check { condition, columns: places(&table.columns, &names)? })
        });
        table.demands = Demands { unique, checks: checks.collect() };
        Ok(Look::Table(table))
    }

    async fn create(&self, destination: &Destination, shape: &Shape) -> Result<(), Failure> {
        let Destination { schema, table, conflict_key, .. } = destination;
        if !is_plain(table) || !is_plain(schema) {
            let text = "a table is only made with a name of letters, digits and underscores";
            return Err(Failure::schema(text));
        }
        let name = format!("{}.{}", quote(schema), quote(table));
        let column = |(name, kind): &(String, Kind)| {
            format!("{} {}", quote(name), type_of(*kind, conflict_key.contains(name)))
        };
        let mut parts: Vec<String> = shape.columns.iter().map(column).collect();
        if let Some((one, other)) = twins(shape) {
            return Err(Failure::schema(format!(
                "no table can be made: the keys {one:?} and {other:?} are one name to DuckDB"
            )));
        }
        if !conflict_key.is_empty() {
            let key: Vec<String> = conflict_key.iter().map(|name| quote(name)).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        if schema != "public" && !self.has_schema(schema.clone()).await? {
            return Err(no_schema(schema));
        }
        let schema = (schema == "public").then_some("CREATE SCHEMA IF NOT EXISTS public;");
        let sql = format!(
            "{} CREATE TABLE IF NOT EXISTS {name} ({})",
            schema.unwrap_or_default(),
            parts.join(", ")
        );
        self.duck.reshape(move |connection| connection.execute_batch(&sql)).await?;
        Ok(())
    }
}

impl DuckDb {
    async fn find(&self, schema: String, table: String) -> Result<Found, Failure> {
        let fleet = self.duck.sql(
            "SELECT count(*) > 0 FROM kodus_workflow.schema_migrations WHERE id = 'fleet:001'",
        );
        let look = move |connection: &Connection| {
            let names = [schema.as_str(), table.as_str()];
            let texts = |sql: &str| -> duckdb::Result<Vec<String>> {
                connection.prepare(sql)?.query_map(names, |row| row.get(0))?.collect()
            };
            let mut columns = connection.prepare(COLUMNS)?;
            let columns = columns
                .query_map(names, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            let names_in = |text: &str| serde_json::from_str(text).unwrap_or_default();
            let mut keys: Vec<Vec<String>> =
                texts(KEYS)?.iter().map(|text| names_in(text)).collect();
            let mut checks = connection.prepare(CHECKS)?;
            let checks = checks
                .query_map(names, |row| Ok((row.get(0)?, names_in(&row.get::<_, String>(1)?))))?;
            keys.extend(texts(INDEXES)?.iter().map(|text| expressions(text)));
            Ok(Found {
                kind: texts(KIND)?.pop(),
                columns: columns.collect::<duckdb::Result<_>>()?,
                keys,
                checks: checks.collect::<duckdb::Result<_>>()?,
                definition: texts(DEFINITION)?.pop().unwrap_or_default(),
                has_fleet: connection.query_row(&fleet, [], |row| row.get(0))?,
            })
        };
        Ok(self.duck.read("look the table up", look).await?)
    }

    async fn has_schema(&self, name: String) -> Result<bool, Failure> {
        let look = move |connection: &Connection| {
            let sql = "SELECT count(*) > 0 FROM duckdb_schemas()
                WHERE database_name = current_database() AND schema_name = $1";
            connection.query_row(sql, [&name], |row| row.get(0))
        };
        Ok(self.duck.read("look the schema up", look).await?)
    }
}

/// Two columns whose names differ only in their case.
fn twins(shape: &Shape) -> Option<(&str, &str)> {
    let names: Vec<&str> = shape.columns.iter().map(|(name, _)| name.as_str()).collect();
    names.iter().enumerate().find_map(|(at, one)| {
        names[..at].iter().find(|other| other.eq_ignore_ascii_case(one)).map(|other| (*other, *one))
    })
}

/// The columns of an index, as they are told: `[a, '"b c"']`.
fn expressions(text: &str) -> Vec<String> {
    let parts = text.trim_matches(['[', ']']).split(',');
    parts.map(|part| part.trim().trim_matches(['\'', '"']).to_owned()).collect()
}

/// The columns that are computed: only the definition tells, in which they stand in their order.
fn generated(definition: &str, columns: &[(String, String, bool, String)]) -> Vec<String> {
    let mut starts = Vec::new();
    let mut from = 0;
    for (name, ..) in columns {
        let forms = [
            format!("({name} "),
            format!(", {name} "),
            format!("({} ", quote(name)),
            format!(", {} ", quote(name)),
        ];
        let found = forms.iter().filter_map(|form| definition[from..].find(form.as_str())).min();
        from += found.unwrap_or(0);
        starts.push(from);
    }
    starts.push(definition.len());
    let parts = columns.iter().zip(starts.windows(2));
    parts
        .filter(|(_, ends)| definition[ends[0]..ends[1]].contains("GENERATED ALWAYS AS"))
        .map(|((name, ..), _)| name.clone())
        .collect()
}

fn sameness(kind: &str) -> Sameness {
    match kind {
        "VARCHAR" => Sameness::Text,
        "UUID" => Sameness::Uuid,
        "DATE" => Sameness::Date,
        _ if super::sql::is_whole(kind) => Sameness::Integer,
        _ => Sameness::Unknown,
    }
}

fn is_nested(kind: &str) -> bool {
    kind.ends_with(']') || ["STRUCT(", "MAP(", "UNION("].iter().any(|word| kind.starts_with(word))
}

fn type_of(kind: Kind, is_key: bool) -> String {
    match kind {
        Kind::Boolean => "BOOLEAN".into(),
        Kind::Integer => "BIGINT".into(),
        Kind::Number(digits) => match exact(digits) {
            Some(kind) => kind,
            // What a double does not tell apart would be one key.
            None if is_key => "VARCHAR".into(),
            None => "DOUBLE".into(),
        },
        Kind::Text => "VARCHAR".into(),
        Kind::Json => "JSON".into(),
    }
}

/// Digits that the longest numbers have.
const LONGEST: usize = 38;
/// Of those, so many at least are left to numbers that are longer than all that were looked at.
const ROOM: usize = 6;

/// A type that keeps every digit, if there is one.
fn exact(digits: Digits) -> Option<String> {
    let Digits { whole, fraction, has_exponent } = digits;
    if has_exponent {
        return None;
    }
    if fraction == 0 {
        return (whole <= LONGEST).then(|| "HUGEINT".into());
    }
    let room = LONGEST.checked_sub(whole + fraction).filter(|room| *room >= ROOM)?;
    Some(format!("DECIMAL({LONGEST}, {})", fraction + room / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_a_type_that_keeps_their_digits_where_there_is_one() {
        let made = |whole, fraction, has_exponent, is_key| {
            type_of(Kind::Number(Digits { whole, fraction, has_exponent }), is_key)
        };
        assert_eq!(made(20, 0, false, false), "HUGEINT");
        assert_eq!(made(38, 0, false, true), "HUGEINT");
        assert_eq!([made(39, 0, false, false), made(39, 0, false, true)], ["DOUBLE", "VARCHAR"]);
        assert_eq!(made(14, 6, false, true), "DECIMAL(38, 15)");
        assert_eq!(made(19, 17, false, false), "DOUBLE", "no room");
        assert_eq!([made(1, 1, true, false), made(1, 1, true, true)], ["DOUBLE", "VARCHAR"]);
    }
}
