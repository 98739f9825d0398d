//! A table of records in memory, which DuckDB writes as a file. It spills to disk when it is large.

use std::path::{Path, PathBuf};

use lavra_db::duckdb::types::Value;
use lavra_db::duckdb::{self, Connection, appender_params_from_iter};

use super::Format;
use crate::model::Extraction;
use crate::records::{Record, parts};
use crate::source::Endpoint;
use crate::views::{duck_value, fan_out_column, quoted};

pub(super) struct Scratch {
    connection: Connection,
    file: PathBuf,
    format: Format,
    columns: String,
    rows: u64,
}

impl Scratch {
    pub(super) fn open(
        file: &Path,
        directory: &Path,
        format: Format,
        endpoint: &Endpoint,
    ) -> duckdb::Result<Self> {
        let connection = Connection::open_in_memory()?;
        let texts: Vec<String> =
            (0..endpoint.columns.len()).map(|place| format!(", c{place} VARCHAR")).collect();
        let texts = texts.concat();
        connection.execute_batch(&format!(
            "SET memory_limit = '512MB'; SET threads = 1; SET temp_directory = {};
             SET autoinstall_known_extensions = false;
             CREATE TABLE records (task_id VARCHAR, endpoint_name VARCHAR, data_date DATE,
                 page INTEGER, position INTEGER, item INTEGER, parent VARCHAR, record VARCHAR
                 {texts})",
            text(&directory.join("spill").display().to_string())
        ))?;
        let columns = columns(endpoint);
        Ok(Self { connection, file: file.to_owned(), format, columns, rows: 0 })
    }

    pub(super) fn add(
        &mut self,
        task: &Extraction,
        page: i64,
        records: &[Record<'_>],
        endpoint: &Endpoint,
    ) -> duckdb::Result<()> {
        let days = task.data_date.since(jiff::civil::date(1970, 1, 1));
        let days = days.map(|span| span.get_days()).unwrap_or_default();
        let whole = |value: i64| Value::Int(i32::try_from(value).unwrap_or(i32::MAX));
        let mut appender = self.connection.appender("records")?;
        for record in records {
            let (item, parent) = match record.within {
                Some((item, parent)) => (whole(item), Value::Text(parent.to_owned())),
                None => (Value::Null, Value::Null),
            };
            let own = [
                Value::Text(task.task_id.0.clone()),
                Value::Text(task.endpoint_name.clone()),
                Value::Date32(days),
                whole(page),
                whole(record.position),
                item,
                parent,
                Value::Text(record.text.to_owned()),
            ];
            let texts = parts(record.text, &endpoint.columns).into_iter();
            let texts = texts.map(|text| text.map_or(Value::Null, Value::Text));
            appender.append_row(appender_params_from_iter(own.into_iter().chain(texts)))?;
        }
        self.rows += records.len() as u64;
        appender.flush()
    }

    /// Writes the file, and says how many rows it has.
    pub(super) fn finish(self) -> duckdb::Result<u64> {
        if self.rows > 0 {
            let options = match self.format {
                Format::Csv => "FORMAT csv, HEADER true",
                // Few rows at once: a record is some kilobytes.
                Format::Parquet | Format::JsonLines => {
                    "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20000"
                }
            };
            let file = text(&self.file.display().to_string());
            let columns = &self.columns;
            self.connection.execute_batch(&format!(
                "COPY (SELECT {columns} FROM records) TO {file} ({options})"
            ))?;
        }
        Ok(self.rows)
    }
}

/// As the endpoint's view has them.
fn columns(endpoint: &Endpoint) -> String {
    let mut columns: Vec<String> =
        ["task_id", "endpoint_name", "data_date", "page", "position"].map(Into::into).into();
    if endpoint.count.is_some() {
        columns.push("item".into());
    }
    columns.extend(fan_out_column(endpoint));
    for (place, column) in endpoint.columns.iter().enumerate() {
        let value = duck_value(&format!("c{place}"), column.kind);
        columns.push(format!("{value} AS {}", quoted(&column.name)));
    }
    if endpoint.count.is_some() {
        columns.push("parent".into());
    }
    columns.push("record".into());
    columns.join(", ")
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
