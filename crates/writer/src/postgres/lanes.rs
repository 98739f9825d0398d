//! The rows of a batch in two halves that have no key in common, so that two connections can write them at
//! once and the last row of a key still wins.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use uuid::Uuid;

use crate::batch::{Group, Part, Row};
use crate::table::{Sameness, Table};
use crate::texts;

/// Fewer rows are not worth a second transaction.
const FEWEST: usize = 2000;

/// `None` where it cannot be told which keys are the same (`1` and `01` may be, and `a` and `A`), or where
/// rows of one half may be in the way of those of the other.
pub(super) fn of<'a>(table: &Table, part: &Part<'a>) -> Option<[Vec<Group<'a>>; 2]> {
    let first = *table.key.first()?;
    let sameness = table.columns[first].sameness;
    if matches!(sameness, Sameness::Unknown | Sameness::Date)
        || table.has_other_keys
        || part.rows().len() < FEWEST
    {
        return None;
    }
    let (mut even, mut odd) = (Vec::new(), Vec::new());
    for group in part.groups() {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for row in group.rows {
            let is_odd = hash(table, first, part, row)? % 2 == 1;
            if is_odd { theirs.push(row) } else { ours.push(row) }
        }
        even.push(Group { signature: group.signature, rows: ours });
        odd.push(Group { signature: group.signature, rows: theirs });
    }
    for lane in [&mut even, &mut odd] {
        lane.retain(|group| !group.rows.is_empty());
    }
    Some([even, odd])
}

/// The same for all rows whose first value of the key is the same.
fn hash(table: &Table, first: usize, part: &Part<'_>, row: &Row) -> Option<u64> {
    let signature = &part.batch.signatures[row.signature];
    let place = signature.iter().position(|column| *column == first)?;
    let text = texts::of(table, part, signature, row).nth(place)??;
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    match table.columns[first].sameness {
        Sameness::Text => Some(hasher.hash_one(&*text)),
        Sameness::Integer => Some(hasher.hash_one(text.trim().parse::<i64>().ok()?)),
        Sameness::Uuid => Some(hasher.hash_one(text.parse::<Uuid>().ok()?)),
        Sameness::Date | Sameness::Unknown => None,
    }
}
