//! Records as files: Parquet, CSV or JSON lines, one file per endpoint and month, in a directory or
//! a bucket.
//!
//! Bodies come out of the store a few at a time and are taken apart here, so that records leave as
//! they came, on both engines. What is not complete is left out, and said.

mod scratch;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use jiff::civil::Date;
use lavra_tasks::Artefacts;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::audit::{batches, is_within};
use crate::error::{Error, Result};
use crate::model::{Extraction, ExtractionId, Page, Status};
use crate::records::records;
use crate::source::{Endpoint, Period, Series, Source};
use crate::store::{Scope, Store};
use scratch::Scratch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Compressed with zstd.
    Parquet,
    Csv,
    /// The records as they came, one in a line.
    JsonLines,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Csv => "text/csv",
            Self::JsonLines => "application/x-ndjson",
        }
    }
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub endpoint: String,
    /// 2024-01, or 2024.
    pub period: String,
    pub key: String,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
}

/// A task that was left out, because it is not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub task: ExtractionId,
    pub status: Status,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub place: String,
    pub rows: u64,
    pub bytes: u64,
    pub files: Vec<Written>,
    pub left_out: Vec<LeftOut>,
    pub is_interrupted: bool,
}

/// What an export needs.
#[derive(Debug)]
pub struct Export {
    pub store: Arc<dyn Store>,
    pub source: Arc<Source>,
    pub to: Artefacts,
    pub format: Format,
    /// Also what is there of tasks that are not complete.
    pub partial: bool,
    pub stop: CancellationToken,
}

impl Export {
    /// Exports all of `scope`; `tell` hears how many files of how many are done.
    pub async fn run(&self, scope: &Scope, tell: impl Fn(usize, usize)) -> Result<Report> {
        let mut report = Report { place: self.to.place().to_owned(), ..Report::default() };
        let mut parts: BTreeMap<(String, Date), (&Endpoint, Vec<Extraction>)> = BTreeMap::new();
        for task in self.store.tasks(scope).await? {
            if let Some(series) = self.source.series(&task.endpoint_name) {
                let part = parts.entry((name_of(&series, scope), task.data_date));
                part.or_insert_with(|| (series.endpoint, Vec::new())).1.push(task);
            }
        }
        // All of a file or none of it: a part would stand where the whole may have stood.
        let is_whole = |tasks: &[Extraction]| tasks.iter().all(|t| t.status == Status::Complete);
        parts.retain(|_, (_, tasks)| {
            let is_kept = self.partial || is_whole(tasks);
            if !is_kept {
                let open = tasks.iter().filter(|task| task.status != Status::Complete);
                report.left_out.extend(
                    open.map(|task| LeftOut { task: task.task_id.clone(), status: task.status }),
                );
            }
            is_kept
        });
        let all = parts.len();
        for (done, ((name, date), (endpoint, tasks))) in parts.into_iter().enumerate() {
            if self.stop.is_cancelled() {
                report.is_interrupted = true;
                break;
            }
            tell(done, all);
            if let Some(file) = self.part(name, endpoint, date, tasks, &mut report).await? {
                report.rows += file.rows;
                report.bytes += file.bytes;
                report.files.push(file);
            }
        }
        Ok(report)
    }

    /// One file: the records of an endpoint's month. `None` where there is not one.
    async fn part(
        &self,
        of: String,
        endpoint: &Endpoint,
        date: Date,
        tasks: Vec<Extraction>,
        report: &mut Report,
    ) -> Result<Option<Written>> {
        let (name, period) = match endpoint.period {
            Period::Month { .. } | Period::Snapshot { .. } => {
                ("month", date.strftime("%Y-%m").to_string())
            }
            Period::Year { .. } => ("year", date.strftime("%Y").to_string()),
        };
        let key = format!("{of}/{name}={period}/{of}-{period}.{}", self.format.extension());
        let directory = tempfile::tempdir().map_err(failed)?;
        let file = directory.path().join("export");
        let mut sheet = Sheet::open(&file, directory.path(), self.format, endpoint)?;
        for task in &tasks {
            sheet = self.task(endpoint, task.clone(), sheet).await?;
        }
        let rows = blocking(move || sheet.finish()).await?;
        // What was fetched anew meanwhile is in the file half as it was and half as it is.
        for task in tasks.iter().filter(|_| !self.partial) {
            let now = self.store.task(&task.task_id).await?;
            let is_same = |now: &Extraction| {
                (now.status, now.generation, now.token)
                    == (task.status, task.generation, task.token)
            };
            if let Some(now) = now.filter(|now| !is_same(now)) {
                report.left_out.push(LeftOut { task: now.task_id, status: now.status });
                return Ok(None);
            }
        }
        if rows == 0 {
            // What an earlier export may have left there is not true any more.
            self.to.remove(&key).await.map_err(failed)?;
            return Ok(None);
        }
        let stored = self.to.put_file(&key, self.format.content_type(), &file).await;
        let stored = stored.map_err(failed)?;
        let (bytes, sha256) = (stored.size, stored.sha256);
        Ok(Some(Written { endpoint: of, period, key, rows, bytes, sha256 }))
    }

    async fn task(&self, endpoint: &Endpoint, task: Extraction, sheet: Sheet) -> Result<Sheet> {
        let windows = self.store.windows(&task.task_id).await?;
        let pages = self.store.pages(&task.task_id).await?;
        let pages: Vec<Page> = pages.into_iter().filter(|page| is_within(&windows, page)).collect();
        let (task, endpoint) = (Arc::new(task), Arc::new(endpoint.clone()));
        let mut sheet = sheet;
        for batch in batches(&pages) {
            let ids = batch.iter().map(|page| page.response).collect();
            let bodies = self.store.bodies(&task.task_id, ids).await?;
            let mut bodies: BTreeMap<_, _> = bodies.into_iter().collect();
            let mut whole: Vec<(i64, String)> = Vec::with_capacity(batch.len());
            for Page { stored, response, .. } in batch {
                match bodies.remove(response).flatten() {
                    Some(body) => whole.push((stored.page, body)),
                    None if stored.records == 0 => {}
                    None => return Err(self.bodiless(&task, stored.page)),
                }
            }
            let (source, task) = (Arc::clone(&self.source), Arc::clone(&task));
            let endpoint = Arc::clone(&endpoint);
            sheet = blocking(move || {
                for (page, body) in &whole {
                    sheet.add(&task, *page, body, &source, &endpoint)?;
                }
                Ok(sheet)
            })
            .await?;
        }
        Ok(sheet)
    }

    /// A file without a page's records would look like a whole one.
    fn bodiless(&self, task: &Extraction, page: i64) -> Error {
        failed(format!(
            "page {page} of {} has records, and its body is not there any more; `lavra extract audit {1}` \
             finds all that is damaged, `lavra extract audit {1} --repair` has the next run fetch it again",
            task.task_id, self.source.name
        ))
    }
}

/// What a file is named after: the endpoint, or one of its lists where not all of them are wanted, so that
/// a part never stands where the whole did.
fn name_of(series: &Series<'_>, scope: &Scope) -> String {
    let is_wanted = |name: &String| scope.endpoints.is_empty() || scope.endpoints.contains(name);
    if series.endpoint.all_series().all(|each| is_wanted(&each.name())) {
        series.endpoint.name.clone()
    } else {
        series.name()
    }
}

/// A file while it is written.
enum Sheet {
    Lines { to: BufWriter<File>, rows: u64 },
    Table(Box<Scratch>),
}

impl Sheet {
    fn open(file: &Path, scratch: &Path, format: Format, endpoint: &Endpoint) -> Result<Self> {
        Ok(match format {
            Format::JsonLines => {
                Self::Lines { to: BufWriter::new(File::create(file).map_err(failed)?), rows: 0 }
            }
            Format::Parquet | Format::Csv => {
                let scratch = Scratch::open(file, scratch, format, endpoint).map_err(failed)?;
                Self::Table(Box::new(scratch))
            }
        })
    }

    fn add(
        &mut self,
        task: &Extraction,
        page: i64,
        body: &str,
        source: &Source,
        endpoint: &Endpoint,
    ) -> Result<()> {
        let records = records(body, source, endpoint);
        match self {
            Self::Lines { to, rows } => {
                for record in &records {
                    in_one_line(record.text, to).map_err(failed)?;
                }
                *rows += records.len() as u64;
                Ok(())
            }
            Self::Table(scratch) => scratch.add(task, page, &records, endpoint).map_err(failed),
        }
    }

    fn finish(self) -> Result<u64> {
        match self {
            Self::Lines { mut to, rows } => {
                to.flush().map_err(failed)?;
                Ok(rows)
            }
            Self::Table(scratch) => scratch.finish().map_err(failed),
        }
    }
}

/// JSON has line breaks only between its parts, where they mean nothing.
fn in_one_line(text: &str, to: &mut impl Write) -> std::io::Result<()> {
    for part in text.split(['\n', '\r']) {
        to.write_all(part.as_bytes())?;
    }
    to.write_all(b"\n")
}

async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(job).await?
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Export(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_endpoint_has_files_of_its_own() {
        let source = Source::built_in("pncp").unwrap().unwrap();
        let name = "contratacoes_publicacao_modalidade_6";
        let series = source.series(name).unwrap();
        let day = jiff::civil::date(2024, 1, 1);
        let scope = |endpoints: Vec<String>| Scope { endpoints, from: day, to: day };
        let whole: Vec<String> = series.endpoint.all_series().map(|each| each.name()).collect();
        for all in [Vec::new(), whole.clone()] {
            assert_eq!(name_of(&series, &scope(all)), "contratacoes_publicacao");
        }
        assert_eq!(name_of(&series, &scope(vec![name.to_owned()])), name);
        assert_eq!(name_of(&series, &scope(whole[1..].to_vec())), name);
        let contracts = source.series("contratos_publicacao").unwrap();
        let only = scope(vec!["contratos_publicacao".to_owned()]);
        assert_eq!(name_of(&contracts, &only), "contratos_publicacao");
    }

    #[test]
    fn a_record_is_one_line_and_otherwise_as_it_came() {
        let mut line = Vec::new();
        in_one_line("{\n  \"a\": 1.50,\r\n  \"b\": \"x\\ny\"\n}", &mut line).unwrap();
        assert_eq!(String::from_utf8(line).unwrap(), "{  \"a\": 1.50,  \"b\": \"x\\ny\"}\n");
    }
}
