//! A batch in one transaction. Where it fails, the rows that cannot be stored are found without storing
//! any: by asking which values their columns do not take, and, for what is still wrong then, by
//! trying halves of it in transactions that are rolled back.

use std::collections::HashSet;

use lavra_db::duckdb::{self, Connection, params};

use super::{DuckDb, sql};
use crate::batch::{Batch, Group, Part, Row};
use crate::failure::Failure;
use crate::model::{FailedItem, Progress};
use crate::store::{Claim, Keep, Stopped};
use crate::table::Table;

/// Rows that are tried together, where some fail.
const PIECE: usize = 1000;
/// Batches for which DuckDB needs more memory than it has.
const LARGE: usize = 16 << 20;
/// What ends a trial that went well.
const TRIAL: &str = "only tried";

/// A statement with its JSON array.
type Statement = (String, String);

impl DuckDb {
    /// What is wrong with the first row that failed, if one did.
    pub(super) async fn write_batch(
        &self,
        claim: &Claim,
        table: &Table,
        batch: &Batch,
        progress: &mut Progress,
        keep: Keep,
    ) -> Result<Option<String>, Stopped> {
        if batch.bytes() > LARGE {
            self.duck.make_room(4 * batch.bytes()).await?;
        }
        let mut known = progress.clone();
        for (name, times) in &batch.unknown {
            *known.unknown_keys.entry(name.clone()).or_default() += times;
        }
        let whole = batch.whole();
        let all = statements(table, &whole, &whole.groups());
        let first = match self.store(claim, &whole, &known, keep, all, Vec::new()).await {
            Ok((after, first)) => {
                known = after;
                first
            }
            Err(Stopped::Failed(failure)) if is_of_rows(&failure) => {
                let mut first = None;
                for piece in batch.parts(PIECE) {
                    let failed = self.find_failed(table, &piece).await?;
                    let bad = failed.iter().map(|item| item.index).collect();
                    let good = statements(table, &piece, &piece.groups_without(&bad));
                    let (after, said) =
                        self.store(claim, &piece, &known, keep, good, failed).await?;
                    known = after;
                    first = first.or(said);
                }
                first
            }
            Err(stopped) => return Err(stopped),
        };
        *progress = known;
        Ok(first)
    }

    async fn store(
        &self,
        claim: &Claim,
        part: &Part<'_>,
        before: &Progress,
        keep: Keep,
        statements: Vec<Statement>,
        mut failed: Vec<FailedItem>,
    ) -> Result<(Progress, Option<String>), Stopped> {
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
            for (sql, array) in &statements {
                tx.execute(sql, [array])?;
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
        Ok((after, failed.into_iter().next().map(|item| item.error)))
    }

    /// The rows of a part that cannot be stored.
    async fn find_failed(
        &self,
        table: &Table,
        part: &Part<'_>,
    ) -> Result<Vec<FailedItem>, Failure> {
        let mut failed = Vec::new();
        for group in part.groups() {
            let sql = sql::misfits(table, group.signature);
            let array = part.array(group.rows.iter().copied());
            let look = move |connection: &Connection| {
                let mut statement = connection.prepare(&sql)?;
                let rows = statement.query_map([&array], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect::<duckdb::Result<Vec<(i64, String)>>>()
            };
            let misfits = self.duck.read("look for values that do not fit", look).await?;
            failed.extend(misfits.into_iter().filter_map(|(place, reason)| {
                group.rows.get(place as usize).map(|row| part.failed(row, reason))
            }));
        }
        // Whatever else there may be: halves are tried until the rows are found. One of the same key
        // that stands before takes the place of one that failed, and may fail as well.
        let mut indices: HashSet<u64> = failed.iter().map(|item| item.index).collect();
        loop {
            let found = self.halve_and_try(table, part, part.groups_without(&indices)).await?;
            if found.is_empty() {
                return Ok(failed);
            }
            indices.extend(found.iter().map(|item| item.index));
            failed.extend(found);
        }
    }

    async fn halve_and_try(
        &self,
        table: &Table,
        part: &Part<'_>,
        groups: Vec<Group<'_>>,
    ) -> Result<Vec<FailedItem>, Failure> {
        let mut failed = Vec::new();
        let mut halves = vec![groups];
        while let Some(groups) = halves.pop() {
            let rows: usize = groups.iter().map(|group| group.rows.len()).sum();
            if rows == 0 {
                continue;
            }
            let Some(error) = self.try_out(statements(table, part, &groups)).await? else {
                continue;
            };
            match groups.iter().flat_map(|group| &group.rows).next() {
                Some(row) if rows == 1 => failed.push(part.failed(row, error)),
                _ => {
                    let (one, other) = halve(groups, rows / 2);
                    halves.push(other);
                    halves.push(one);
                }
            }
        }
        Ok(failed)
    }

    /// What is wrong with these, if anything is; nothing is stored.
    async fn try_out(&self, statements: Vec<Statement>) -> Result<Option<String>, Failure> {
        let tried: lavra_db::Result<()> = self
            .duck
            .write("try rows", move |tx| {
                for (sql, array) in &statements {
                    tx.execute(sql, [array])?;
                }
                Err(duckdb::Error::InvalidParameterName(TRIAL.into()))
            })
            .await;
        match tried {
            Ok(()) => Ok(None),
            Err(lavra_db::Error::Duck { source, .. }) if source.to_string().contains(TRIAL) => {
                Ok(None)
            }
            Err(error) => {
                let failure = Failure::from(error);
                if is_of_rows(&failure) { Ok(Some(plain(&failure.message))) } else { Err(failure) }
            }
        }
    }
}

fn statements(table: &Table, part: &Part<'_>, groups: &[Group<'_>]) -> Vec<Statement> {
    let one = |group: &Group<'_>| {
        (sql::of_array(table, group.signature), part.array(group.rows.iter().copied()))
    };
    groups.iter().map(one).collect()
}

/// The first `count` rows, and the others.
fn halve(groups: Vec<Group<'_>>, mut count: usize) -> (Vec<Group<'_>>, Vec<Group<'_>>) {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for mut group in groups {
        let rest: Vec<&Row> = group.rows.split_off(count.min(group.rows.len()));
        count -= group.rows.len();
        let signature = group.signature;
        if !group.rows.is_empty() {
            one.push(group);
        }
        if !rest.is_empty() {
            other.push(Group { signature, rows: rest });
        }
    }
    (one, other)
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
