//! From the text of elements to batches, on a thread of its own: while the database takes one batch the
//! next one is made, and never more than that.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::batch::{Batch, place_of};
use crate::config::Limits;
use crate::failure::Failure;
use crate::model::FailedItem;
use crate::row::examine;
use crate::split::{Malformed, Piece, Splitter};
use crate::table::Table;

/// Bytes that are looked at at once.
const CHUNK: usize = 64 << 10;
/// Of names without a column, so many are told.
const UNKNOWN: usize = 100;

/// Where batches go, with `None` after the last; gone when nobody wants them any more.
pub(crate) type Batches = mpsc::Sender<Result<Option<Batch>, Failure>>;

#[derive(Debug)]
pub(crate) struct Collector {
    table: Arc<Table>,
    limits: Limits,
    /// What was settled before.
    skip: u64,
    batch: Batch,
}

/// Nobody wants the rest, or there is something wrong.
enum Stop {
    Unwanted,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Malformed> for Stop {
    fn from(error: Malformed) -> Self {
        Self::Failed(error.into())
    }
}

impl Collector {
    pub(crate) fn new(table: Arc<Table>, limits: Limits, skip: u64) -> Self {
        Self { table, limits, skip, batch: Batch::starting(skip) }
    }

    /// Reads to the end and sends every batch; blocks.
    pub(crate) fn run(mut self, mut bytes: impl Read, path: Vec<String>, batches: &Batches) {
        let mut splitter = Splitter::new(path, self.limits.caps.bytes);
        let read = read(&mut bytes, &mut splitter, &mut |index, piece| {
            self.take(index, piece)?;
            if self.batch.len() >= self.limits.batch_rows
                || self.batch.bytes() >= self.limits.batch_bytes
            {
                return self.send(batches);
            }
            Ok(())
        });
        let end = match read.and_then(|()| self.send(batches)) {
            Ok(()) => Ok(None),
            Err(Stop::Failed(failure)) => Err(failure),
            Err(Stop::Unwanted) => return,
        };
        let _unwanted = batches.blocking_send(end);
    }

    fn send(&mut self, batches: &Batches) -> Result<(), Stop> {
        let next = Batch::starting(self.batch.to);
        let mut batch = std::mem::replace(&mut self.batch, next);
        batch.close(self.table.width());
        batches.blocking_send(Ok(Some(batch))).map_err(|_| Stop::Unwanted)
    }

    fn take(&mut self, index: u64, piece: Piece<'_>) -> Result<(), Stop> {
        if index >= self.limits.rows {
            let text = format!("the source has more than {} elements", self.limits.rows);
            return Err(Failure::storage(text).into());
        }
        if index < self.skip {
            return Ok(());
        }
        self.batch.to = index + 1;
        let (text, error) = match piece {
            Piece::TooLong { bytes } => {
                let most = self.limits.caps.bytes;
                ("null", format!("it is {bytes} bytes long; {most} are allowed"))
            }
            Piece::Element(text) => match self.row(index, text) {
                Ok(()) => return Ok(()),
                Err(error) => (text, error),
            },
        };
        self.batch.refused.push(FailedItem { index, data: text.to_owned(), error });
        Ok(())
    }

    fn row(&mut self, index: u64, text: &str) -> Result<(), String> {
        let fields = examine(text, &self.limits.caps)?;
        let table = Arc::clone(&self.table);
        let mut filled: Vec<(usize, Range<usize>)> = Vec::with_capacity(fields.len());
        for (name, value) in &fields {
            match table.place(name) {
                Some(place) => filled.push((place, place_of(text, value.get()))),
                None if table.is_whole(name) => {}
                None => count(&mut self.batch.unknown, name),
            }
        }
        // Of a key that stands twice the last one counts, as in every JSON object.
        filled.reverse();
        filled.sort_by_key(|(place, _)| *place);
        filled.dedup_by_key(|(place, _)| *place);
        let is_there = |key: &usize| {
            filled.iter().any(|(place, value)| place == key && &text[value.clone()] != "null")
        };
        if let Some(missing) = table.key.iter().find(|key| !is_there(key)) {
            let name = &table.columns[*missing].name;
            return Err(format!("it has no value for the key {name:?}"));
        }
        if filled.is_empty() && table.whole.is_none() {
            return Err("none of its keys is a column of the table".into());
        }
        self.batch.push(index, text, &filled, &table.key);
        Ok(())
    }
}

fn count(unknown: &mut BTreeMap<String, u64>, name: &str) {
    if let Some(times) = unknown.get_mut(name) {
        *times += 1;
    } else if unknown.len() < UNKNOWN {
        unknown.insert(name.chars().take(UNKNOWN).collect(), 1);
    }
}

fn read(
    bytes: &mut impl Read,
    splitter: &mut Splitter,
    sink: &mut impl FnMut(u64, Piece<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match bytes.read(&mut chunk) {
            Ok(0) => return splitter.finish(sink),
            Ok(length) => splitter.feed(&chunk[..length], sink)?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(crate::decode::failure(error).into()),
        }
    }
}

/// The first elements of a source, to see what they are like; blocks.
pub(crate) fn sample(
    mut bytes: impl Read,
    path: Vec<String>,
    limits: &Limits,
    most: usize,
) -> Result<Vec<String>, Failure> {
    let mut splitter = Splitter::new(path, limits.caps.bytes);
    let mut found = Vec::new();
    let read = read(&mut bytes, &mut splitter, &mut |_, piece| {
        if let Piece::Element(text) = piece
            && examine(text, &limits.caps).is_ok()
        {
            found.push(text.to_owned());
        }
        if found.len() >= most { Err(Stop::Unwanted) } else { Ok(()) }
    });
    match read {
        Ok(()) | Err(Stop::Unwanted) => Ok(found),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}
