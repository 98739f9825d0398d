//! From the text of elements to batches, on a thread of its own: while the database takes one batch the
//! next one is made, and never more than that.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::batch::{Batch, place_of};
use crate::config::Limits;
use crate::failure::Failure;
use crate::model::{FailedItem, count_unknown};
use crate::row::examine;
use crate::split::{Malformed, Piece, Splitter};
use crate::table::Table;

/// Bytes that are looked at at once.
const CHUNK: usize = 64 << 10;

/// New rows of the first batch, so that the database has something to do soon; each batch has twice as many
/// as the one before, up to what is allowed. Of rows that may be of one key it is better to see many at once.
const FIRST: usize = 1000;

/// Where batches go, with `None` after the last; gone when nobody wants them any more.
pub(crate) type Batches = mpsc::Sender<Result<Option<Batch>, Failure>>;

#[derive(Debug)]
pub(crate) struct Collector {
    table: Arc<Table>,
    limits: Limits,
    /// What was settled before.
    skip: u64,
    /// How many elements came so far.
    seen: u64,
    batch: Batch,
    /// Rows of the batch that is made, at most.
    room: usize,
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
        let most = limits.batch_rows;
        let room = if table.key.is_empty() { FIRST.min(most) } else { most };
        Self { table, limits, skip, seen: 0, batch: Batch::starting(skip), room }
    }

    /// Reads to the end and sends every batch; blocks.
    pub(crate) fn run(mut self, mut bytes: impl Read, path: Vec<String>, batches: &Batches) {
        let mut splitter = Splitter::new(path, self.limits.caps.bytes);
        let read = read(&mut bytes, &mut splitter, &mut |index, piece| {
            self.take(index, piece)?;
            if self.batch.len() >= self.room || self.batch.bytes() >= self.limits.batch_bytes {
                return self.send(batches);
            }
            Ok(())
        });
        let end = match read.and_then(|()| self.is_all_there()) {
            Ok(()) => Ok(None),
            Err(Stop::Failed(failure)) => Err(failure),
            Err(Stop::Unwanted) => return,
        };
        // What came before something that is wrong is stored as well.
        let is_left = end.is_ok() || self.batch.len() > 0;
        if is_left && self.send(batches).is_err() {
            return;
        }
        let _unwanted = batches.blocking_send(end);
    }

    /// What was settled must still be there: a source that has become shorter is another one, of which
    /// nobody can say what was stored.
    fn is_all_there(&self) -> Result<(), Stop> {
        if self.seen >= self.skip {
            return Ok(());
        }
        let text = format!(
            "the source has become shorter while it was inserted: it has {} elements, and {} were \
             settled before",
            self.seen, self.skip
        );
        Err(Failure::storage(text).into())
    }

    fn send(&mut self, batches: &Batches) -> Result<(), Stop> {
        let next = Batch::starting(self.batch.to);
        let mut batch = std::mem::replace(&mut self.batch, next);
        self.room = (self.room * 2).min(self.limits.batch_rows);
        batch.close(&self.table.of_key());
        batches.blocking_send(Ok(Some(batch))).map_err(|_| Stop::Unwanted)
    }

    fn take(&mut self, index: u64, piece: Piece<'_>) -> Result<(), Stop> {
        if index >= self.limits.rows {
            let text = format!("the source has more than {} elements", self.limits.rows);
            return Err(Failure::storage(text).into());
        }
        self.seen = index + 1;
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
        self.batch.refuse(FailedItem { index, data: text.to_owned(), error });
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
                None => count_unknown(&mut self.batch.unknown, name, 1),
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

/// How much of a source is looked at before a table is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) elements: usize,
    pub(crate) bytes: usize,
}

/// The first elements of a source, to see what they are like; blocks.
pub(crate) fn sample(
    mut bytes: impl Read,
    path: Vec<String>,
    limits: &Limits,
    most: Sample,
) -> Result<Vec<String>, Failure> {
    let mut splitter = Splitter::new(path, limits.caps.bytes);
    let (mut found, mut length) = (Vec::new(), 0);
    let read = read(&mut bytes, &mut splitter, &mut |_, piece| {
        if let Piece::Element(text) = piece
            && examine(text, &limits.caps).is_ok()
        {
            length += text.len();
            found.push(text.to_owned());
        }
        if found.len() >= most.elements || length >= most.bytes {
            Err(Stop::Unwanted)
        } else {
            Ok(())
        }
    });
    match read {
        Ok(()) | Err(Stop::Unwanted) => Ok(found),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Destination, Operation};

    fn batches(source: &'static str, skip: u64) -> Vec<Result<Option<Batch>, Failure>> {
        let destination = Destination {
            schema: "public".into(),
            table: "none".into(),
            operation: Operation::Insert,
            conflict_key: Vec::new(),
            create_table: false,
        };
        let table = Table::new("none".into(), Vec::new(), &destination).unwrap();
        let limits = Limits { batch_bytes: 1000, ..Limits::default() };
        let (sender, mut receiver) = mpsc::channel(1000);
        Collector::new(Arc::new(table), limits, skip).run(source.as_bytes(), Vec::new(), &sender);
        drop(sender);
        std::iter::from_fn(|| receiver.blocking_recv()).collect()
    }

    #[test]
    fn elements_that_are_refused_fill_a_batch_as_well() {
        let element = format!("{{\"t\":\"{}\"}}", "x".repeat(300));
        let source = format!("[{}]", vec![element; 30].join(","));
        let batches = batches(source.leak(), 0);
        assert!(batches.len() > 5, "{}", batches.len());
        let refused = batches.iter().flatten().flatten().map(|batch| batch.refused.len());
        assert_eq!(refused.sum::<usize>(), 30);
    }

    #[test]
    fn what_came_before_a_failure_is_sent_before_it() {
        let ends = batches("{\"a\":1}\n{\"a\":2}\n{\"a\" 3}\n", 0);
        assert!(matches!(&ends[..], [Ok(Some(batch)), Err(_)] if batch.to == 2), "{ends:?}");
        let ends = batches("nothing", 0);
        assert!(matches!(&ends[..], [Err(_)]), "{ends:?}");
    }

    #[test]
    fn a_source_that_became_shorter_is_a_failure() {
        let ends = batches("[1, 2, 3]", 4);
        assert!(matches!(&ends[..], [Err(failure)] if failure.message.contains("shorter")));
        let ends = batches("[1, 2, 3]", 3);
        assert!(matches!(ends.last(), Some(Ok(None))), "what is as long as it was is not");
    }

    #[test]
    fn a_sample_ends_with_its_elements_or_its_bytes() {
        let source = r#"[{"a":1},{"a":2},{"a":3},{"a":4}]"#;
        let found = |elements, bytes| {
            let most = Sample { elements, bytes };
            sample(source.as_bytes(), Vec::new(), &Limits::default(), most).unwrap().len()
        };
        assert_eq!([found(10, 1000), found(3, 1000), found(10, 10)], [4, 3, 2]);
    }
}
