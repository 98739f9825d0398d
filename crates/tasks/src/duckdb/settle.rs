//! What becomes of each row of a creation: a new task, an existing one, or a refusal. Pure; the
//! closure that creates asks the file in between.

use std::collections::{HashMap, HashSet};

use super::existing::{Kept, KnownKey};
use crate::error::Error;
use crate::model::TaskId;
use crate::store::{Made, NewRow};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// To be made, unless its hash is taken.
    Open,
    /// Has the key or the hash of an earlier row, and becomes what that one becomes.
    Like(usize),
    /// Its key belongs to this task, which is not there: the task of its hash, if there is one.
    Gone(TaskId),
    Known(TaskId),
}

/// What the keys of the rows say, and which rows are the same as earlier ones.
pub(super) fn fates(
    input: &[NewRow],
    known: &HashMap<String, KnownKey>,
) -> Result<Vec<Fate>, Error> {
    let mut keys: HashMap<&str, usize> = HashMap::new();
    let mut hashes: HashMap<(&str, &str), usize> = HashMap::new();
    let mut fates = Vec::with_capacity(input.len());
    for (place, row) in input.iter().enumerate() {
        let mut fate = by_key(row, known, &keys, input)?.unwrap_or(Fate::Open);
        if let (Fate::Open, Some(hash)) = (&fate, &row.input_hash) {
            let first = *hashes.entry((&row.kind, hash)).or_insert(place);
            if first != place {
                fate = Fate::Like(first);
            }
        }
        if let Some(key) = &row.key {
            keys.entry(&key.key).or_insert(place);
        }
        fates.push(fate);
    }
    Ok(fates)
}

fn by_key(
    row: &NewRow,
    known: &HashMap<String, KnownKey>,
    earlier: &HashMap<&str, usize>,
    input: &[NewRow],
) -> Result<Option<Fate>, Error> {
    let Some(key) = &row.key else { return Ok(None) };
    let (fingerprint, fate) = if let Some(known) = known.get(&key.key) {
        let fate = if known.is_there {
            Fate::Known(known.task)
        } else if known.task == row.id {
            Fate::Open
        } else {
            Fate::Gone(known.task)
        };
        (&known.fingerprint, fate)
    } else {
        let first = earlier.get(key.key.as_str()).copied();
        match first.and_then(|first| Some((first, input[first].key.as_ref()?))) {
            Some((first, same)) => (&same.fingerprint, Fate::Like(first)),
            None => return Ok(None),
        }
    };
    if *fingerprint != key.fingerprint {
        return Err(Error::KeyReused(key.key.clone()));
    }
    Ok(Some(fate))
}

/// `new` are the tasks that were made; `found` has, by the row's id, the task of its hash.
pub(super) fn settle(
    input: &[NewRow],
    fates: &[Fate],
    new: &HashSet<TaskId>,
    found: &HashMap<TaskId, TaskId>,
) -> Vec<Made> {
    let mut all: Vec<Made> = Vec::with_capacity(input.len());
    for (row, fate) in input.iter().zip(fates) {
        let by_hash = |otherwise| Made::Existing(found.get(&row.id).copied().unwrap_or(otherwise));
        all.push(match fate {
            Fate::Open if new.contains(&row.id) => Made::New,
            Fate::Open => by_hash(row.id),
            Fate::Gone(task) => by_hash(*task),
            Fate::Like(first) => match &all[*first] {
                Made::New => Made::Existing(input[*first].id),
                Made::Existing(task) => Made::Existing(*task),
            },
            Fate::Known(task) => Made::Existing(*task),
        });
    }
    all
}

/// Keys that are new, and those whose task is now another one.
pub(super) fn keys_to_keep<'a>(
    input: &'a [NewRow],
    fates: &[Fate],
    made: &[Made],
    known: &HashMap<String, KnownKey>,
) -> Vec<Kept<'a>> {
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    for ((row, fate), made) in input.iter().zip(fates).zip(made) {
        let Some(key) = &row.key else { continue };
        let task = match made {
            Made::New => row.id,
            Made::Existing(task) => *task,
        };
        let is_known = known.contains_key(&key.key) && !matches!(fate, Fate::Gone(_));
        if !is_known && seen.insert(&key.key) {
            kept.push(Kept { key: &key.key, fingerprint: &key.fingerprint, task_id: task });
        }
    }
    kept
}
