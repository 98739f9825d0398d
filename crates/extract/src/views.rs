//! The records of an endpoint as a view: `psa.pncp_contratos_publicacao`, one row per record.
//!
//! A view shows what counts: the pages within the totals that were announced last, each by its last
//! response. It is made anew when its source's definition says otherwise; the comment on it says
//! from which definition it was made.

use std::fmt::Write;

use lavra_db::Database;
use lavra_db::duckdb::Connection;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::source::{Column, Endpoint, Kind, Pointer, Source};

/// The columns that each view has, beside those of its source.
pub(crate) const OWN_COLUMNS: [&str; 9] = [
    "task_id",
    "endpoint_name",
    "data_date",
    "page",
    "position",
    "item",
    "extracted_at",
    "parent",
    "record",
];

/// Any constant will do, as long as every lavra uses the same.
const ADVISORY_LOCK: i64 = 0x006c_6176_7677;

/// A view, and what it is made from.
struct View {
    name: String,
    body: String,
}

impl View {
    fn of(source: &Source, endpoint: &Endpoint, engine: Engine) -> Self {
        let name = format!("{}_{}", source.name, endpoint.name);
        Self { name, body: body(source, endpoint, engine) }
    }

    fn comment(&self) -> String {
        format!("lavra {:016x}", xxh3_64(self.body.as_bytes()))
    }

    fn sql(&self, engine: Engine) -> String {
        let Self { name, body } = self;
        let with = match engine {
            Engine::Duck => "",
            Engine::Postgres => " WITH (security_invoker = true)",
        };
        format!(
            "DROP VIEW IF EXISTS psa.{name};\nCREATE VIEW psa.{name}{with} AS\n{body};\n\
             COMMENT ON VIEW psa.{name} IS '{}';\n",
            self.comment()
        )
    }
}

#[derive(Clone, Copy)]
enum Engine {
    Duck,
    Postgres,
}

/// Makes the views of a source that are not there, or not as it says now.
pub async fn ensure(database: &Database, source: &Source) -> Result<()> {
    let operation = "make the views of a source";
    let engine = match database {
        Database::Duck(_) => Engine::Duck,
        Database::Postgres(_) => Engine::Postgres,
    };
    let views = source.endpoints.iter().map(|endpoint| View::of(source, endpoint, engine));
    let mut stale: Vec<View> = views.collect();
    match database {
        Database::Duck(duck) => {
            let read = |connection: &Connection| {
                let mut statement = connection.prepare(
                    "SELECT view_name, coalesce(comment, '') FROM duckdb_views()
                     WHERE schema_name = 'psa' AND database_name = current_database()",
                )?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect::<Result<Vec<(String, String)>, _>>()
            };
            let there = duck.read(operation, read).await?;
            stale.retain(|view| !is_there(&there, view));
            if !stale.is_empty() {
                let sql: String = stale.iter().map(|view| view.sql(engine)).collect();
                duck.write(operation, move |tx| tx.execute_batch(&sql)).await?;
            }
        }
        Database::Postgres(pg) => {
            let failed = |source| lavra_db::Error::Postgres { operation, source };
            let sql = "SELECT c.relname::text, coalesce(obj_description(c.oid, 'pg_class'), '')
                       FROM pg_catalog.pg_class c
                       JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                       WHERE c.relkind = 'v' AND n.nspname = 'psa'";
            let rows = pg.query(operation, sql, &[]).await?;
            let there = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            let there: Vec<(String, String)> = there.collect::<Result<_, _>>().map_err(failed)?;
            stale.retain(|view| !is_there(&there, view));
            if !stale.is_empty() {
                let sql: String = stale.iter().map(|view| view.sql(engine)).collect();
                // Someone who reads a view for hours holds up its change, not the extraction.
                let sql = format!(
                    "BEGIN; SET LOCAL lock_timeout = '20s'; SET LOCAL statement_timeout = '60s';
                     SELECT pg_advisory_xact_lock({ADVISORY_LOCK}); {sql} COMMIT"
                );
                let client = pg.client().await?;
                if let Err(source) = client.batch_execute(&sql).await {
                    let _closed = client.batch_execute("ROLLBACK").await;
                    return Err(failed(source).into());
                }
            }
        }
    }
    Ok(())
}

fn is_there(there: &[(String, String)], view: &View) -> bool {
    there.iter().any(|(name, comment)| *name == view.name && *comment == view.comment())
}

/// The records of `endpoint`.
fn body(source: &Source, endpoint: &Endpoint, engine: Engine) -> String {
    let name = &source.name;
    let mut columns = String::from("task_id, endpoint_name, data_date, page, position");
    let is_nested = endpoint.count.is_some();
    if is_nested {
        columns.push_str(", item");
    }
    if let Some(column) = fan_out_column(endpoint) {
        let _infallible = write!(columns, ", {column}");
    }
    for (place, column) in endpoint.columns.iter().enumerate() {
        let (value, name) = (engine.value(place, column), engine.name(column));
        let _infallible = write!(columns, ",\n       {value} AS {}", quoted(&name));
    }
    columns.push_str(if is_nested {
        ",\n       extracted_at, parent, record"
    } else {
        ",\n       extracted_at, record"
    });
    let of = match &endpoint.fan_out {
        None => format!("t.endpoint_name = '{}'", endpoint.name),
        Some(fan_out) => {
            let prefix = format!("{}_{}_", endpoint.name, fan_out.label);
            format!("substr(t.endpoint_name, 1, {}) = '{prefix}'", prefix.len())
        }
    };
    let pages = format!(
        "FROM psa.{name}_extraction_tasks t
      JOIN psa.{name}_extraction_windows w ON w.task_id = t.task_id
      JOIN psa.{name}_pages p ON p.task_id = t.task_id
           AND p.page > w.base AND p.page <= w.base + w.total_pages
      JOIN psa.{name}_raw_responses r ON r.id = p.response_id
      WHERE {of}"
    );
    let records = engine.records(&source.response.records, endpoint.count.as_ref(), &pages);
    let records = engine.with_parts(records, &endpoint.columns);
    format!("SELECT {columns}\nFROM (\n{records}\n) records")
}

const PAGE: &str = "t.task_id, t.endpoint_name, t.data_date, p.page, r.extracted_at";
const CARRIED: &str = "task_id, endpoint_name, data_date, page, extracted_at";

impl Engine {
    fn records(self, at: &Pointer, count: Option<&Pointer>, pages: &str) -> String {
        match (self, count) {
            (Self::Duck, None) => format!(
                "  SELECT {CARRIED}, unnest(list) AS record, generate_subscripts(list, 1) AS position
  FROM (
      SELECT {PAGE}, CAST({} AS JSON[]) AS list
      {pages}
  ) pages",
                self.at("r.response_content", at)
            ),
            (Self::Duck, Some(count)) => format!(
                "  SELECT {CARRIED}, position, parent, unnest(list) AS record,
         generate_subscripts(list, 1) AS item
  FROM (
      SELECT {CARRIED}, position, parent, CAST({} AS JSON[]) AS list
      FROM (
{}
      ) parents
  ) lists",
                self.at("parent", count),
                self.records(at, None, pages).replace("AS record", "AS parent")
            ),
            (Self::Postgres, None) => format!(
                "  SELECT {PAGE}, x.record, x.position
      {} ",
                pages.replacen(
                    "      WHERE",
                    &format!(
                        "      CROSS JOIN LATERAL (SELECT {} AS body OFFSET 0) b
      CROSS JOIN LATERAL json_array_elements({}) WITH ORDINALITY AS x(record, position)
      WHERE",
                        without_zeros("r.response_content"),
                        self.list("b.body", at)
                    ),
                    1
                )
            ),
            (Self::Postgres, Some(count)) => format!(
                "  SELECT {CARRIED}, position, parent, x.record, x.item
  FROM (
{}
  ) parents
  CROSS JOIN LATERAL json_array_elements({}) WITH ORDINALITY AS x(record, item)",
                self.records(at, None, pages).replace("x.record", "x.record AS parent"),
                self.list("parent", count)
            ),
        }
    }

    /// DuckDB takes a record apart once for all of its columns.
    fn with_parts(self, records: String, columns: &[Column]) -> String {
        match self {
            Self::Duck if !columns.is_empty() => {
                let paths: Vec<String> = columns.iter().map(|c| text(&path(&c.at))).collect();
                format!(
                    "  SELECT *, json_extract_string(record, [{}]) AS parts FROM (\n{records}\n  ) r",
                    paths.join(", ")
                )
            }
            Self::Duck | Self::Postgres => records,
        }
    }

    /// A list, or none where there is something else.
    fn list(self, value: &str, at: &Pointer) -> String {
        let list = self.at(value, at);
        format!("CASE WHEN json_typeof({list}) = 'array' THEN {list} END")
    }

    /// What a pointer points at.
    fn at(self, value: &str, pointer: &Pointer) -> String {
        match self {
            Self::Duck => format!("json_extract({value}, {})", text(&path(pointer))),
            Self::Postgres => format!("({value} #> {})", array(pointer)),
        }
    }

    /// How a column is called, so that nobody has to quote it.
    fn name(self, column: &Column) -> String {
        match self {
            Self::Duck => column.name.clone(),
            Self::Postgres => column.name.to_ascii_lowercase(),
        }
    }

    /// A column, or NULL where the record has something else there.
    fn value(self, place: usize, column: &Column) -> String {
        match self {
            Self::Duck => duck_value(&format!("parts[{}]", place + 1), column.kind),
            Self::Postgres => {
                let value = format!("(record #>> {})", array(&column.at));
                postgres_value(&value, column.kind)
            }
        }
    }
}

/// The value of the fan-out, which is the end of the endpoint's name.
pub(crate) fn fan_out_column(endpoint: &Endpoint) -> Option<String> {
    let label = &endpoint.fan_out.as_ref()?.label;
    // Counted from one, past the underscores.
    let from = endpoint.name.len() + label.len() + 3;
    Some(format!("substr(endpoint_name, {from}) AS {}", quoted(label)))
}

/// A text as what a column holds.
pub(crate) fn duck_value(value: &str, kind: Kind) -> String {
    match duck_type(kind) {
        None => value.to_owned(),
        Some(kind) => format!("TRY_CAST({value} AS {kind})"),
    }
}

/// The type of a column, where it is not text.
fn duck_type(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Text => None,
        Kind::Integer => Some("BIGINT"),
        Kind::Decimal => Some("DECIMAL(38, 4)"),
        Kind::Double => Some("DOUBLE"),
        Kind::Boolean => Some("BOOLEAN"),
        Kind::Date => Some("DATE"),
        Kind::Timestamp => Some("TIMESTAMP"),
    }
}

const DAY: &str = "(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
const TIME: &str = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]";

/// PostgreSQL raises an error where a value cannot be cast, so only what can be is.
fn postgres_value(value: &str, kind: Kind) -> String {
    let number = r"^-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$";
    let when = |pattern: &str, then: String| {
        format!("CASE WHEN {value} ~ {} THEN {then} END", text(pattern))
    };
    let part = |from: u8, length: u8| format!("substr({value}, {from}, {length})::integer");
    // A day that the month does not have is one of the next.
    let day = format!("(make_date({}, {}, 1) + {} - 1)", part(1, 4), part(6, 2), part(9, 2));
    match kind {
        Kind::Text => value.to_owned(),
        Kind::Integer => when("^-?[0-9]{1,18}$", format!("{value}::bigint")),
        Kind::Decimal => when(number, format!("round({value}::numeric, 4)")),
        Kind::Double => when(number, format!("{value}::double precision")),
        Kind::Boolean => when("^(true|false)$", format!("{value}::boolean")),
        Kind::Date => when(&format!("^{DAY}"), day),
        Kind::Timestamp => {
            when(&format!("^{DAY}[T ]{TIME}"), format!("({day} + substr({value}, 12, 8)::time)"))
        }
    }
}

/// A body as JSON that PostgreSQL can take apart: no text of its own can hold a `\u0000`, and one in a
/// body would be an error for all records. After an odd number of other backslashes it is none.
fn without_zeros(body: &str) -> String {
    let zero = text(r"(?<!\\)((\\\\)*)\\u0000");
    format!(
        r"(CASE WHEN strpos({body}, '\u0000') = 0 THEN {body}
           ELSE regexp_replace({body}, {zero}, '\1\\ufffd', 'g') END)::json"
    )
}

/// A JSON pointer as it is written.
fn path(pointer: &Pointer) -> String {
    pointer
        .0
        .iter()
        .fold(String::new(), |path, part| path + "/" + &part.replace('~', "~0").replace('/', "~1"))
}

fn array(pointer: &Pointer) -> String {
    let parts: Vec<String> = pointer.0.iter().map(|part| text(part)).collect();
    format!("ARRAY[{}]::text[]", parts.join(", "))
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
