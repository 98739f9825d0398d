//! A batch in one transaction. Where it fails, DuckDB is asked which of the rows it would refuse, and the
//! others are stored; what it cannot be asked is found by storing smaller and smaller parts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use lavra_db::duckdb::{self, Connection, params};

use super::nested::exact;
use super::once::once;
use super::{DuckDb, sql};
use crate::batch::{Batch, Group, Part, Row};
use crate::failure::Failure;
use crate::model::{FailedItem, Progress};
use crate::store::{Claim, Keep, Stopped, Writes};
use crate::table::{Signature, Table};
use crate::texts;

/// Rows that are stored together at most, where a look did not tell which of them fail.
const PIECE: usize = 1000;
/// Batches for which DuckDB needs more memory than it has.
const LARGE: usize = 16 << 20;

/// A statement with a JSON array for each of its columns.
type Statement = (String, Vec<String>);

#[async_trait]
impl Writes for DuckDb {
    async fn write(
        &self,
        claim: &Claim,
        table: &Table,
        batch: &Batch,
        progress: &mut Progress,
        keep: Keep,
    ) -> Result<(), Stopped> {
        if batch.bytes() > LARGE {
            self.duck.make_room(4 * batch.bytes()).await?;
        }
        let mut known = progress.clone();
        known.count_unknown(&batch.unknown);
        let whole = batch.whole();
        let all = statements(table, &whole, &whole.groups());
        let written = match self.store(claim, &whole, &known, keep, all, Vec::new()).await {
            Ok(after) => {
                known = after;
                Ok(())
            }
            Err(Stopped::Failed(failure)) if is_of_rows(&failure) => {
                self.in_order(claim, table, whole, &mut known, keep).await
            }
            Err(stopped) => Err(stopped),
        };
        progress.catch_up(known);
        written
    }
}

impl DuckDb {
    async fn store(
        &self,
        claim: &Claim,
        part: &Part<'_>,
        before: &Progress,
        keep: Keep,
        statements: Vec<Statement>,
        mut failed: Vec<FailedItem>,
    ) -> Result<Progress, Stopped> {
        failed.extend_from_slice(part.refused());
        failed.sort_by_key(|item| item.index);
        let after = part.after(before, failed.len() as u64);
        let kept = keep.room(before.failed_count).min(failed.len());
        let items: Vec<serde_json::Value> = failed[..kept]
            .iter()
            .map(|item| serde_json::json!({ "i": item.index, "d": item.data, "e": item.error }))
            .collect();
        let items = (kept > 0).then(|| serde_json::Value::from(items).to_string());
        let keep_items = self.duck.sql(
            "INSERT INTO kodus_workflow.writer_failed_items (job_id, item_index, data, error)
             SELECT $1, CAST(json_extract_string(item, '/i') AS BIGINT),
                 json_extract_string(item, '/d'), json_extract_string(item, '/e')
             FROM (SELECT unnest(CAST(CAST($2 AS JSON) AS JSON[])) AS item)",
        );
        let update = self.duck.sql(
            "UPDATE kodus_workflow.writer_jobs
             SET total = $2, processed = $3, success_count = $4, failed_count = $5,
                 duplicate_count = $6, unknown_keys = $7
             WHERE job_id = $1",
        );
        let unknown = serde_json::to_string(&after.unknown_keys).unwrap_or_default();
        let progress = after.clone();
        self.guarded("write a batch", claim, move |tx, id| {
            for (sql, columns) in &statements {
                tx.execute(sql, duckdb::params_from_iter(columns))?;
            }
            if let Some(items) = &items {
                tx.execute(&keep_items, params![id, items])?;
            }
            let number = |number: u64| number as i64;
            tx.execute(
                &update,
                params![
                    id,
                    number(progress.total),
                    number(progress.processed),
                    number(progress.success_count),
                    number(progress.failed_count),
                    number(progress.duplicate_count),
                    unknown
                ],
            )?;
            Ok(())
        })
        .await?;
        Ok(after)
    }

    /// Without the rows that the table would refuse, as far as a look tells; where it is not enough, in
    /// smaller and smaller parts, down to the one row that fails.
    async fn in_order(
        &self,
        claim: &Claim,
        table: &Table,
        whole: Part<'_>,
        known: &mut Progress,
        keep: Keep,
    ) -> Result<(), Stopped> {
        let mut parts = vec![whole];
        while let Some(part) = parts.pop() {
            let mut found = self.find_bad(table, &part).await?;
            let bad = found.keys().copied().collect();
            let failing = part.failing(&bad);
            found.retain(|index, _| failing.contains(index));
            let mut failed: Vec<FailedItem> = found.into_values().collect();
            let good = statements(table, &part, &part.groups_without(&bad));
            let mut stored = self.store(claim, &part, known, keep, good, failed.clone()).await;
            if let Err(Stopped::Failed(failure)) = &stored
                && is_of_rows(failure)
            {
                let [row] = part.rows() else {
                    let most = PIECE.min(part.rows().len().div_ceil(2));
                    parts.extend(part.pieces(most).into_iter().rev());
                    continue;
                };
                failed.push(part.failed(row, plain(&failure.message)));
                stored = self.store(claim, &part, known, keep, Vec::new(), failed).await;
            }
            *known = stored?;
        }
        Ok(())
    }

    /// The rows of a part that the table would refuse, with why.
    async fn find_bad(
        &self,
        table: &Table,
        part: &Part<'_>,
    ) -> Result<BTreeMap<u64, FailedItem>, Failure> {
        let mut judged = Vec::new();
        for group in part.by_signature() {
            judged.extend(self.judge(table, part, &group).await?);
        }
        judged.sort_by_key(|(row, ..)| row.index);
        let mut bad: BTreeMap<u64, FailedItem> = BTreeMap::new();
        let mut taken: HashSet<(usize, String)> = HashSet::new();
        for (row, reason, keys) in judged {
            let keys: Vec<(usize, String)> =
                keys.into_iter().enumerate().filter_map(|(at, key)| Some((at, key?))).collect();
            let again = || keys.iter().find(|key| taken.contains(*key));
            let again = || again().map(|(_, key)| format!("{}{key}", sql::DUPLICATE));
            match reason.or_else(again) {
                Some(reason) => drop(bad.insert(row.index, part.failed(row, reason))),
                None => taken.extend(keys),
            }
        }
        Ok(bad)
    }

    /// Of each row why the table would refuse it, and its unique keys. Where the question itself fails,
    /// nothing is known.
    async fn judge<'a>(
        &self,
        table: &Table,
        part: &Part<'_>,
        group: &Group<'a>,
    ) -> Result<Vec<(&'a Row, Option<String>, Vec<Option<String>>)>, Failure> {
        let sql = sql::judged(table, group.signature);
        let columns = columns(table, part, group.signature, &group.rows);
        let look = move |connection: &Connection| {
            let mut statement = connection.prepare(&sql)?;
            let told = |row: &duckdb::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let rows = statement.query_map(duckdb::params_from_iter(&columns), told)?;
            rows.collect::<duckdb::Result<Vec<(i64, Option<String>, String)>>>()
        };
        let told = match self.duck.read("look for rows that do not fit", look).await {
            Ok(told) => told,
            Err(error) => {
                let failure = Failure::from(error);
                return if is_of_rows(&failure) { Ok(Vec::new()) } else { Err(failure) };
            }
        };
        let judged = told.into_iter().filter_map(|(place, reason, keys)| {
            let row = *group.rows.get(place as usize)?;
            Some((row, reason, serde_json::from_str(&keys).unwrap_or_default()))
        });
        Ok(judged.collect())
    }
}

fn statements(table: &Table, part: &Part<'_>, groups: &[Group<'_>]) -> Vec<Statement> {
    let is_certain = part.batch.is_certain;
    let one = |group: &Group<'_>| {
        let mut rows = group.rows.clone();
        if !is_certain {
            rows.sort_unstable_by_key(|row| row.index);
        }
        let sql = sql::of_columns(table, group.signature, is_certain);
        (sql, columns(table, part, group.signature, &rows))
    };
    groups.iter().map(one).collect()
}

/// The texts of each column, as a JSON array.
fn columns(table: &Table, part: &Part<'_>, signature: &Signature, rows: &[&Row]) -> Vec<String> {
    let count = table.filled(signature).count();
    let mut columns = vec![Vec::with_capacity(rows.len()); count];
    for row in rows {
        let texts = texts::of(table, part, signature, row);
        let filled = table.filled(signature).zip(&mut columns);
        for ((column, texts), text) in filled.zip(texts) {
            texts.push(match text {
                Some(Cow::Borrowed(json)) if column.is_json => Some(once(json)),
                Some(json) if column.is_list => Some(Cow::Owned(exact(&column.kind, &once(&json)))),
                other => other,
            });
        }
    }
    columns.iter().map(|column| serde_json::to_string(column).unwrap_or_default()).collect()
}

fn is_of_rows(failure: &Failure) -> bool {
    let kinds =
        ["Constraint Error", "Conversion Error", "Invalid Input Error", "Out of Range Error"];
    kinds.iter().any(|kind| failure.message.contains(kind))
}

/// The words of the engine alone, on one line.
fn plain(message: &str) -> String {
    let text = message.split_once("Error: ").map_or(message, |(_, text)| text);
    text.lines().next().unwrap_or_default().to_owned()
}
