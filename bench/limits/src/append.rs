//! DuckDB's appender on bodies that are in memory already: the columns of Lavra's raw responses, 32 rows
//! to a transaction, into a file that is opened as Lavra opens it, folded into the file at the end.
//! Only that is timed. What Lavra does besides (the pages that are done, hashes, leases) is not done.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use duckdb::{Config, Connection, params};
use serde_json::{Value, json};

use crate::bodies;

const COMMIT: usize = 32;
const LEVEL: i32 = 3;
const TABLE: &str = "CREATE TABLE raw_responses (
    id UUID NOT NULL, extracted_at TIMESTAMP, endpoint_url VARCHAR NOT NULL,
    endpoint_name VARCHAR NOT NULL, request_parameters JSON, response_code INTEGER NOT NULL,
    response_content TEXT, response_headers JSON, data_date DATE, run_id VARCHAR,
    total_records INTEGER, total_pages INTEGER, current_page INTEGER, page_size INTEGER,
    task_id VARCHAR NOT NULL, page INTEGER NOT NULL, outcome VARCHAR NOT NULL, error TEXT,
    elapsed_ms INTEGER NOT NULL
)";
const URL: &str = "http://127.0.0.1:15000/api/consulta/v1/contratacoes/publicacao";
const HEADERS: &str = r#"{"content-type":"application/json"}"#;

pub fn run(from: &Path, database: &Path) -> Result<Value> {
    let bodies = bodies::load(from)?;
    let start = Instant::now();
    append(&bodies, database)?;
    let seconds = start.elapsed().as_secs_f64();
    let compressed = bodies
        .iter()
        .map(|body| Ok(zstd::bulk::compress(body.as_bytes(), LEVEL)?.len()))
        .sum::<Result<usize>>()?;
    let rows = count(database)?;
    ensure!(rows == bodies.len(), "{rows} rows are in the file instead of {}", bodies.len());
    Ok(json!({
        "pages": bodies.len(),
        "seconds": seconds,
        "pages_per_s": bodies.len() as f64 / seconds,
        "file_bytes": std::fs::metadata(database)?.len(),
        "zstd_bytes": compressed,
    }))
}

fn append(bodies: &[String], database: &Path) -> Result<()> {
    let connection = open(database)?;
    connection.execute_batch(TABLE)?;
    for (batch, bodies) in bodies.chunks(COMMIT).enumerate() {
        connection.execute_batch("BEGIN")?;
        let mut appender = connection.appender("raw_responses")?;
        for (at, body) in bodies.iter().enumerate() {
            let page = (batch * COMMIT + at + 1) as i32;
            appender.append_row(params![
                format!("00000000-0000-4000-8000-{page:012x}"),
                "2026-11-16 12:00:00",
                URL,
                "contratacoes_publicacao_modalidade_6",
                format!(r#"{{"dataInicial":"20240701","dataFinal":"20240731","pagina":{page}}}"#),
                200,
                body,
                HEADERS,
                "2024-07-01",
                "00000000-0000-4000-8000-000000000000",
                48_000,
                960,
                page,
                50,
                "contratacoes_publicacao_modalidade_6_2024-07-01",
                page,
                "data",
                None::<&str>,
                1,
            ])?;
        }
        appender.flush()?;
        drop(appender);
        connection.execute_batch("COMMIT")?;
    }
    connection.execute_batch("CHECKPOINT")?;
    connection.close().map_err(|(_, error)| error).context("cannot close the file")
}

fn open(database: &Path) -> Result<Connection> {
    // As Lavra opens it: see `crates/db/src/duck/open.rs` for the reasons.
    let config =
        Config::default().with("max_vacuum_tasks", "0")?.with("checkpoint_threshold", "1TB")?;
    let config = config.with("threads", "1")?;
    let connection = Connection::open_in_memory_with_flags(config)?;
    let file = database.to_string_lossy().replace('\'', "''");
    let block = if database.exists() { "" } else { ", BLOCK_SIZE 65536" };
    connection
        .execute_batch(&format!(
            "ATTACH '{file}' AS bench (STORAGE_VERSION 'v1.2.0'{block}); USE bench;"
        ))
        .context("cannot open the file")?;
    Ok(connection)
}

fn count(database: &Path) -> Result<usize> {
    Ok(open(database)?.query_row("SELECT count(*) FROM raw_responses", [], |row| row.get(0))?)
}
