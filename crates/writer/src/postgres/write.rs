//! A batch: at once where all of it is well, in pieces where something is not, and one by one where a
//! piece is not. Each of these is a transaction with what is known of the job after it.
//!
//! An upsert that is begun again begins from its first row. So its rows may be written before that is
//! known of them, and two connections write halves of a batch.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::{Error, Transaction};
use serde_json::{Value, json};

use super::{Postgres, doubts, jobs, lanes, rows, sql};
use crate::batch::{Batch, Group, Part, Row};
use crate::failure::{Code, Failure};
use crate::model::{FailedItem, Progress};
use crate::store::{Claim, Keep, Stopped, Writes};
use crate::table::Table;
use crate::texts;

/// Rows that are tried one by one in one transaction: each may be a subtransaction, of which a server
/// keeps few at hand.
const PIECE: usize = 1000;
/// Of these so many are first tried together.
const RUN: usize = 16;
/// Bytes of a COPY that are sent at once.
const SENT: usize = 64 << 10;
/// How often a transaction that lost against another one is tried.
const CONFLICTS: u32 = 8;
/// How often the server is waited for, each time twice as long.
const LOST: u32 = 6;

/// A host that is gone tells nobody, and the server would keep the job locked for the two hours after which
/// systems ask whether a line still has an end. For this transaction only, which is all that a pooler
/// passes on; every role may set them, and a Unix socket has no use for the last three.
const IF_WE_VANISH: &str = "set_config('idle_in_transaction_session_timeout', '60s', true),
    set_config('tcp_keepalives_idle', '15', true),
    set_config('tcp_keepalives_interval', '5', true),
    set_config('tcp_keepalives_count', '3', true)";

/// Whether others may write for the job meanwhile.
#[derive(Clone, Copy, Debug)]
enum Lock {
    Alone,
    Shared,
}

/// How the rows of a part are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way<'a> {
    AtOnce,
    OneByOne,
    /// The same, and what the table would look at with the commit is looked at with each row.
    Strictly,
    /// Those that look well at once, and then these one by one.
    Sorted(&'a HashSet<u64>),
    /// They have been.
    Written,
}

#[async_trait]
impl Writes for Postgres {
    async fn write(
        &self,
        claim: &Claim,
        table: &Table,
        batch: &Batch,
        progress: &mut Progress,
        keep: Keep,
    ) -> Result<(), Stopped> {
        let mut known = progress.clone();
        known.count_unknown(&batch.unknown);
        let write = Write { store: self, claim, table, keep };
        let written = if batch.is_in_doubt() {
            // One after the other, which the server does in one statement.
            write.in_pieces(batch, &mut known, Way::OneByOne).await
        } else {
            match write.at_best(batch, &mut known).await {
                Ok(()) => Ok(()),
                Err(Trouble::Row) => write.in_order(batch, &mut known).await,
                Err(Trouble::Stopped(stopped)) => Err(stopped),
            }
        };
        progress.catch_up(known);
        written
    }
}

#[derive(Debug)]
enum Trouble {
    /// A row cannot be stored as it is.
    Row,
    Stopped(Stopped),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Stopped(Stopped::Failed(error.into()))
    }
}

struct Write<'a> {
    store: &'a Postgres,
    claim: &'a Claim,
    table: &'a Table,
    keep: Keep,
}

impl Write<'_> {
    async fn at_best(&self, batch: &Batch, progress: &mut Progress) -> Result<(), Trouble> {
        let way = self.in_lanes(&batch.whole()).await?;
        self.try_part(&batch.whole(), progress, way).await
    }

    /// By two connections, where that is possible; tells how to go on.
    async fn in_lanes(&self, part: &Part<'_>) -> Result<Way<'static>, Trouble> {
        let Some([even, odd]) = lanes::of(self.table, part) else { return Ok(Way::AtOnce) };
        let mut way = Way::Written;
        for written in <[_; 2]>::from(tokio::join!(self.lane(part, &even), self.lane(part, &odd))) {
            match written {
                Ok(()) => {}
                // It may be the other's fault.
                Err(Trouble::Stopped(Stopped::Failed(_))) => way = Way::AtOnce,
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(way)
    }

    async fn lane(&self, part: &Part<'_>, groups: &[Group<'_>]) -> Result<(), Trouble> {
        let (mut transaction, _) = self.begin(Lock::Shared).await?;
        match self.at_once(&mut transaction, part, groups).await {
            Ok(()) => transaction.finish("SELECT 1", &[]).await.map(drop).map_err(judge),
            Err(error) => {
                let _already_gone = transaction.rollback().await;
                Err(judge(error))
            }
        }
    }

    /// A transaction of the one that has the job, and nobody else's until it ends, with how far the job
    /// has come.
    async fn begin(&self, lock: Lock) -> Result<(Transaction<'_>, Progress), Trouble> {
        let mut transaction = self.store.pg.transaction("write a batch").await?;
        let lock = match lock {
            Lock::Alone => "UPDATE",
            Lock::Shared => "SHARE",
        };
        let guard = format!(
            "SELECT total, processed, success_count, failed_count, duplicate_count, unknown_keys,
                 {IF_WE_VANISH}
             FROM kodus_workflow.writer_jobs
             WHERE job_id = $1 AND token = $2 AND completed_at IS NULL FOR {lock}"
        );
        let id = self.claim.id.as_str();
        let owner = [(&id as _, Type::TEXT), (&self.claim.token as _, Type::INT8)];
        let rows = transaction.query(&guard, &owner).await?;
        let Some(row) = rows.first() else {
            transaction.rollback().await?;
            return Err(Trouble::Stopped(Stopped::Replaced));
        };
        let stored = jobs::progress(row).map_err(|failure| Trouble::Stopped(failure.into()))?;
        Ok((transaction, stored))
    }

    /// Something is wrong with a row: what can be seen from here, if it is that.
    async fn in_order(&self, batch: &Batch, progress: &mut Progress) -> Result<(), Stopped> {
        let whole = batch.whole();
        // Rows that may be of one key are not taken apart.
        if batch.is_certain {
            let doubts = doubts::of(&self.store.pg, self.table, &whole, PIECE).await;
            if (1..=PIECE).contains(&doubts.len()) {
                match self.try_part(&whole, progress, Way::Sorted(&doubts)).await {
                    Ok(()) => return Ok(()),
                    Err(Trouble::Row) => {}
                    Err(Trouble::Stopped(stopped)) => return Err(stopped),
                }
            }
        }
        self.in_pieces(batch, progress, Way::AtOnce).await
    }

    async fn in_pieces(
        &self,
        batch: &Batch,
        progress: &mut Progress,
        begin: Way<'_>,
    ) -> Result<(), Stopped> {
        let mut has_bad = false;
        let whole = batch.whole();
        // What becomes of a row may depend on one of its key that comes after it.
        let most = if whole.are_keys_whole(PIECE) { PIECE } else { whole.rows().len() };
        let pieces = whole.pieces(most);
        for piece in &pieces {
            // The only one has been tried, and bad rows seldom come alone.
            let mut way = if pieces.len() == 1 || has_bad { Way::OneByOne } else { begin };
            let before = progress.failed_count;
            while let Err(trouble) = self.try_part(piece, progress, way).await {
                way = match (trouble, way) {
                    (Trouble::Stopped(stopped), _) => return Err(stopped),
                    (Trouble::Row, Way::AtOnce) => Way::OneByOne,
                    (Trouble::Row, Way::OneByOne) => Way::Strictly,
                    (Trouble::Row, Way::Strictly | Way::Sorted(_) | Way::Written) => {
                        let text = "rows that fail at once do not fail one by one";
                        return Err(Failure::new(Code::Internal, text).into());
                    }
                };
            }
            has_bad = progress.failed_count > before;
        }
        Ok(())
    }

    /// Tries until it is decided, and carries `progress` on.
    async fn try_part(
        &self,
        part: &Part<'_>,
        progress: &mut Progress,
        way: Way<'_>,
    ) -> Result<(), Trouble> {
        let (mut conflicts, mut lost) = (0, 0);
        loop {
            let error = match self.part(part, progress, way).await {
                Ok(after) => {
                    *progress = after;
                    return Ok(());
                }
                Err(Trouble::Stopped(Stopped::Failed(failure))) if failure.is_passing => failure,
                Err(trouble) => return Err(trouble),
            };
            let wait = if is_conflict(&error) {
                conflicts += 1;
                if conflicts > CONFLICTS {
                    return Err(Trouble::Stopped(error.into()));
                }
                Duration::from_millis(rand::random_range(5..50) * u64::from(conflicts))
            } else {
                lost += 1;
                if lost > LOST {
                    return Err(Trouble::Stopped(error.into()));
                }
                Duration::from_millis(100 << lost)
            };
            tracing::warn!(job = %self.claim.id, error = %error.message, retry_in = ?wait, "a batch is tried again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn part(
        &self,
        part: &Part<'_>,
        before: &Progress,
        way: Way<'_>,
    ) -> Result<Progress, Trouble> {
        let (mut transaction, stored) = self.begin(Lock::Alone).await?;
        if stored.processed != before.processed {
            transaction.rollback().await?;
            return settled(part, stored);
        }
        let written = match way {
            Way::AtOnce => {
                let written = self.at_once(&mut transaction, part, &part.groups()).await;
                written.map(|()| Vec::new()).map_err(judge)
            }
            Way::Written => Ok(Vec::new()),
            Way::OneByOne | Way::Strictly => {
                if way == Way::Strictly {
                    transaction.query("SET CONSTRAINTS ALL IMMEDIATE", &[]).await?;
                }
                let all: Vec<_> = part.rows().iter().collect();
                self.one_by_one(&mut transaction, part, &all).await
            }
            Way::Sorted(doubts) => self.sorted(&mut transaction, part, doubts).await,
        };
        let mut failed: Vec<FailedItem> = match written {
            Ok(refused) => {
                let failing = part.failing(&refused.iter().map(|row| row.item.index).collect());
                let items = refused.into_iter().map(|row| row.item);
                items.filter(|item| failing.contains(&item.index)).collect()
            }
            Err(trouble) => {
                // A connection that is lost cannot be told so.
                let _already_gone = transaction.rollback().await;
                return Err(trouble);
            }
        };
        failed.extend_from_slice(part.refused());
        failed.sort_by_key(|item| item.index);
        let after = part.after(before, failed.len() as u64);
        let kept = self.keep.room(before.failed_count).min(failed.len());
        self.keep_failed(&mut transaction, &failed[..kept]).await?;
        let sql = "UPDATE kodus_workflow.writer_jobs
                   SET total = $3, processed = $4, success_count = $5, failed_count = $6,
                       duplicate_count = $7, unknown_keys = $8
                   WHERE job_id = $1 AND token = $2";
        let unknown = serde_json::to_string(&after.unknown_keys).unwrap_or_default();
        let numbers = [
            after.total,
            after.processed,
            after.success_count,
            after.failed_count,
            after.duplicate_count,
        ]
        .map(|number| number as i64);
        let id = self.claim.id.as_str();
        let mut params: Vec<lavra_db::Param<'_>> =
            vec![(&id as _, Type::TEXT), (&self.claim.token as _, Type::INT8)];
        params.extend(numbers.iter().map(|number| (number as _, Type::INT8)));
        params.push((&unknown as _, Type::TEXT));
        // Some of what a table asks for is looked at with the commit.
        transaction.finish(sql, &params).await.map_err(judge)?;
        Ok(after)
    }

    async fn at_once(
        &self,
        transaction: &mut Transaction<'_>,
        part: &Part<'_>,
        groups: &[Group<'_>],
    ) -> lavra_db::Result<()> {
        for group in groups {
            if self.table.is_copied(group.signature)
                && self.copied(transaction, part, group).await?
            {
                continue;
            }
            let count = self.table.filled(group.signature).count();
            let mut columns = vec![Vec::with_capacity(group.rows.len()); count];
            for row in &group.rows {
                let texts = texts::of(self.table, part, group.signature, row);
                columns.iter_mut().zip(texts).for_each(|(column, text)| column.push(text));
            }
            let params: Vec<lavra_db::Param<'_>> =
                columns.iter().map(|column| (column as _, Type::TEXT_ARRAY)).collect();
            transaction.query(&sql::of_columns(self.table, group.signature), &params).await?;
        }
        Ok(())
    }

    /// Whether the rows could be copied: of which each is new, or all of them fail.
    async fn copied(
        &self,
        transaction: &mut Transaction<'_>,
        part: &Part<'_>,
        group: &Group<'_>,
    ) -> lavra_db::Result<bool> {
        let Some(mut copying) = transaction.copy(&sql::copy(self.table, group.signature)).await?
        else {
            return Ok(false);
        };
        let mut lines = Vec::with_capacity(SENT + 4096);
        for row in &group.rows {
            rows::line(texts::of(self.table, part, group.signature, row), &mut lines);
            if lines.len() >= SENT {
                let sent = std::mem::replace(&mut lines, Vec::with_capacity(SENT + 4096));
                copying.send(sent.into()).await?;
            }
        }
        copying.send(lines.into()).await?;
        copying.end().await?;
        Ok(true)
    }

    async fn sorted(
        &self,
        transaction: &mut Transaction<'_>,
        part: &Part<'_>,
        doubts: &HashSet<u64>,
    ) -> Result<Vec<Refused>, Trouble> {
        let others = part.groups_without(doubts);
        self.at_once(transaction, part, &others).await.map_err(judge)?;
        let rows: Vec<_> = part.rows().iter().filter(|row| doubts.contains(&row.index)).collect();
        let refused = self.one_by_one(transaction, part, &rows).await?;
        // Where a row may take what another one needs, one that comes late must be none that could come
        // at all.
        let is_any_order = !self.table.has_other_keys
            || refused.len() == rows.len() && refused.iter().all(Refused::is_by_itself);
        if is_any_order { Ok(refused) } else { Err(Trouble::Row) }
    }

    /// Tries some rows one after the other, and tells which are not stored.
    async fn one_by_one(
        &self,
        transaction: &mut Transaction<'_>,
        part: &Part<'_>,
        all: &[&Row],
    ) -> Result<Vec<Refused>, Trouble> {
        let values = |row: &&Row| {
            let signature = &part.batch.signatures[row.signature];
            let texts = texts::of(self.table, part, signature, row);
            texts.map(|text| text.map_or(Value::Null, Into::into)).collect::<Value>()
        };
        let alike = all.chunk_by(|row, next| row.signature == next.signature);
        let mut runs = Vec::new();
        let mut place = 0;
        for run in alike.flat_map(|alike| alike.chunks(RUN)) {
            let rows: Value = run.iter().map(values).collect();
            runs.push(json!([run[0].signature, place, rows]));
            place += run.len();
        }
        let runs = Value::Array(runs).to_string();
        let set = "SELECT length(set_config('lavra.rows', $1, true))";
        transaction.query(set, &[(&runs as _, Type::TEXT)]).await?;
        let mark = format!("lavra{:016x}", rand::random::<u64>());
        let sql = sql::in_runs(self.table, &part.batch.signatures, &mark);
        transaction.query(&sql, &[]).await.map_err(judge)?;
        let get = "SELECT current_setting('lavra.failed')";
        let told = transaction.query(get, &[]).await?;
        let told: Option<String> = told.first().and_then(|row| row.try_get(0).ok());
        let told: Vec<(usize, String, String)> = serde_json::from_str(&told.unwrap_or_default())
            .map_err(|error| {
                let text = format!("the server does not tell which rows failed: {error}");
                Trouble::Stopped(Failure::new(Code::Internal, text).into())
            })?;
        let refused = told.into_iter().filter_map(|(place, error, state)| {
            all.get(place).map(|row| Refused { item: part.failed(row, error), state })
        });
        Ok(refused.collect())
    }

    async fn keep_failed(
        &self,
        transaction: &mut Transaction<'_>,
        failed: &[FailedItem],
    ) -> lavra_db::Result<()> {
        if failed.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO kodus_workflow.writer_failed_items (job_id, item_index, data, error)
                   SELECT $1, * FROM unnest($2, $3, $4)
                   ON CONFLICT (job_id, item_index) DO NOTHING";
        let indices: Vec<i64> = failed.iter().map(|item| item.index as i64).collect();
        let data: Vec<&str> = failed.iter().map(|item| item.data.as_str()).collect();
        let errors: Vec<&str> = failed.iter().map(|item| item.error.as_str()).collect();
        let params = [
            (&self.claim.id.as_str() as _, Type::TEXT),
            (&indices as _, Type::INT8_ARRAY),
            (&data as _, Type::TEXT_ARRAY),
            (&errors as _, Type::TEXT_ARRAY),
        ];
        transaction.query(sql, &params).await?;
        Ok(())
    }
}

/// A row that the server does not take.
struct Refused {
    item: FailedItem,
    state: String,
}

impl Refused {
    /// Whether it is for what it says, whatever other rows there are: a value that is none of its type, one
    /// that is missing, or one that a CHECK refuses.
    fn is_by_itself(&self) -> bool {
        self.state.starts_with("22") || ["23502", "23514"].contains(&self.state.as_str())
    }
}

/// Of a part whose job has come further than was known: a line was cut while a commit was on its way. It
/// waited with the lock until that was over, and must not store again what is there.
fn settled(part: &Part<'_>, stored: Progress) -> Result<Progress, Trouble> {
    if stored.processed == part.to {
        return Ok(stored);
    }
    let text =
        format!("{} elements are settled, which is not where a batch ends", stored.processed);
    let failure = Failure::new(Code::Internal, text).passing();
    Err(Trouble::Stopped(failure.into()))
}

fn is_conflict(failure: &Failure) -> bool {
    ["SQLSTATE 40001", "SQLSTATE 40P01"].iter().any(|state| failure.message.contains(state))
}

/// Whether a row is at fault, the table, or the server.
fn judge(error: Error) -> Trouble {
    let Error::Postgres { source, .. } = &error else { return error.into() };
    let Some(said) = source.as_db_error() else { return error.into() };
    let class = said.code().code().get(..2).unwrap_or_default();
    // A policy refuses a row with the code by which a whole table is refused.
    if said.routine() == Some("ExecWithCheckOptions") || !sql::NOT_OF_ROWS.contains(&class) {
        return Trouble::Row;
    }
    // The table is not what it was, or is not ours to write.
    let is_of_table = ["42", "3F", "28"].contains(&class);
    let failure = Failure::from(error);
    let code = if is_of_table { Code::Schema } else { failure.code };
    Trouble::Stopped(Stopped::Failed(Failure { code, ..failure }))
}
