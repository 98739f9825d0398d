//! Elements that are written together, and parts of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::key;
use crate::model::{FailedItem, Progress};
use crate::table::{Sameness, Signature};

/// Elements between two places of the source, in its order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) from: u64,
    /// The place after the last one.
    pub(crate) to: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) signatures: Vec<Signature>,
    /// Those that cannot be rows.
    pub(crate) refused: Vec<FailedItem>,
    refused_bytes: usize,
    pub(crate) unknown: BTreeMap<String, u64>,
    /// All rows, one after the other.
    text: String,
    /// Where the values of the key stand in the text, so many for each row.
    keys: Vec<Range<usize>>,
    /// Where those of all columns stand, in the order of each row's signature.
    values: Vec<Range<usize>>,
    /// The rows by their keys, the last of one key first: everybody who writes comes by in the same
    /// order. With each, whether its key is that of the one before.
    order: Vec<(usize, bool)>,
    /// Whether rows whose keys are not told as one have keys of their own for sure.
    pub(crate) is_certain: bool,
    known: HashMap<Signature, usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) index: u64,
    pub(crate) signature: usize,
    place: Range<usize>,
    /// Of the batch's values.
    values: Range<usize>,
}

impl Batch {
    pub(crate) fn starting(from: u64) -> Self {
        Self { from, to: from, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.refused.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.refused_bytes
    }

    /// Adds an element that cannot be a row.
    pub(crate) fn refuse(&mut self, item: FailedItem) {
        self.refused_bytes += item.data.len() + item.error.len();
        self.refused.push(item);
    }

    /// Adds an element that fills these columns with what stands at these places within it.
    pub(crate) fn push(
        &mut self,
        index: u64,
        text: &str,
        fields: &[(usize, Range<usize>)],
        key: &[usize],
    ) {
        let start = self.text.len();
        self.text.push_str(text);
        let within = |place: &Range<usize>| place.start + start..place.end + start;
        let of_key = key.iter().filter_map(|key| fields.iter().find(|(column, _)| column == key));
        self.keys.extend(of_key.map(|(_, place)| within(place)));
        let first = self.values.len();
        self.values.extend(fields.iter().map(|(_, place)| within(place)));
        let signature: Signature = fields.iter().map(|(column, _)| *column).collect();
        let signature = match self.known.get(&signature) {
            Some(place) => *place,
            None => {
                let place = self.signatures.len();
                self.signatures.push(signature.clone());
                self.known.insert(signature, place);
                place
            }
        };
        let values = first..self.values.len();
        self.rows.push(Row { index, signature, place: start..self.text.len(), values });
    }

    pub(crate) fn text(&self, row: &Row) -> &str {
        &self.text[row.place.clone()]
    }

    /// The values of a row as they stand in its element, in the order of its signature.
    pub(crate) fn values(&self, row: &Row) -> impl Iterator<Item = &str> {
        self.values[row.values.clone()].iter().map(|place| &self.text[place.clone()])
    }

    /// Puts the rows in order, by keys of which so much is known.
    pub(crate) fn close(&mut self, of_key: &[Sameness]) {
        self.is_certain = true;
        if of_key.is_empty() {
            self.order = (0..self.rows.len()).map(|row| (row, false)).collect();
            return;
        }
        let values = self.keys.iter().zip(of_key.iter().cycle());
        let values: Vec<key::Value<'_>> = values
            .map(|(place, sameness)| key::value(*sameness, &self.text[place.clone()]))
            .collect();
        let keys: Vec<&[key::Value<'_>]> = values.chunks(of_key.len()).collect();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by(|a, b| keys[*a].cmp(keys[*b]).then(b.cmp(a)));
        let is_again = |at: usize| at > 0 && keys[order[at]] == keys[order[at - 1]];
        let order: Vec<_> = (0..order.len()).map(|at| (order[at], is_again(at))).collect();
        let is_certain = are_apart(&keys, of_key.len());
        drop(values);
        (self.order, self.is_certain) = (order, is_certain);
    }

    /// Whether it matters in which order its rows are written, and which of them it matters for is not
    /// known.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.is_certain && self.signatures.len() > 1
    }

    pub(crate) fn whole(&self) -> Part<'_> {
        Part {
            batch: self,
            from: self.from,
            to: self.to,
            rows: 0..self.rows.len(),
            refused: 0..self.refused.len(),
        }
    }
}

/// Some of a batch, between two places of the source.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) from: u64,
    pub(crate) to: u64,
    rows: Range<usize>,
    refused: Range<usize>,
}

/// Rows that fill the same columns.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) rows: Vec<&'a Row>,
}

impl<'a> Part<'a> {
    pub(crate) fn refused(&self) -> &'a [FailedItem] {
        &self.batch.refused[self.refused.clone()]
    }

    /// Every row, in the order of the source.
    pub(crate) fn rows(&self) -> &'a [Row] {
        &self.batch.rows[self.rows.clone()]
    }

    /// The same in pieces of at most `rows` rows, in the order of the source.
    pub(crate) fn pieces(&self, rows: usize) -> Vec<Self> {
        let batch = self.batch;
        let mut pieces = Vec::new();
        let (mut from, mut start, mut refused) = (self.from, self.rows.start, self.refused.start);
        while start < self.rows.end || pieces.is_empty() {
            let end = (start + rows.max(1)).min(self.rows.end);
            let to = if end == self.rows.end { self.to } else { batch.rows[end].index };
            let rest = &batch.refused[refused..self.refused.end];
            let until = refused + rest.partition_point(|item| item.index < to);
            pieces.push(Part { batch, from, to, rows: start..end, refused: refused..until });
            (from, start, refused) = (to, end, until);
        }
        pieces
    }

    /// Those of one key together, the last one first.
    fn by_key(&self) -> impl Iterator<Item = impl Iterator<Item = &'a Row> + Clone> {
        let same_key = |_: &(usize, bool), (_, is_again): &(usize, bool)| *is_again;
        self.batch.order.chunk_by(same_key).map(|of_one_key| {
            let ours = of_one_key.iter().filter(|(row, _)| self.rows.contains(row));
            ours.map(|(row, _)| &self.batch.rows[*row])
        })
    }

    /// How many rows another one of the same key follows.
    pub(crate) fn duplicates(&self) -> u64 {
        self.by_key().map(|of_one_key| of_one_key.count().saturating_sub(1) as u64).sum()
    }

    /// The rows with these indices and all others that have one of their keys.
    pub(crate) fn with_their_keys(&self, some: &HashSet<u64>) -> HashSet<u64> {
        let mut all = HashSet::new();
        for of_one_key in self.by_key() {
            let indices = of_one_key.map(|row| row.index);
            if indices.clone().any(|index| some.contains(&index)) {
                all.extend(indices);
            }
        }
        all
    }

    /// Whether pieces of so many rows have all rows of a key together.
    pub(crate) fn are_keys_whole(&self, rows: usize) -> bool {
        let indices = self.rows();
        let piece =
            |row: &Row| indices.partition_point(|other| other.index < row.index) / rows.max(1);
        self.by_key().all(|of_one_key| {
            let mut pieces = of_one_key.map(piece);
            let first = pieces.next();
            pieces.all(|piece| Some(piece) == first)
        })
    }

    /// Of rows that cannot be stored those that fail. The others are never missed: a later row of their
    /// key says all that they say.
    pub(crate) fn failing(&self, bad: &HashSet<u64>) -> HashSet<u64> {
        let mut failing = HashSet::new();
        if bad.is_empty() {
            return failing;
        }
        let mut after: Vec<usize> = Vec::new();
        for of_one_key in self.by_key() {
            after.clear();
            for row in of_one_key {
                if self.is_said(row, &after) {
                    continue;
                }
                if bad.contains(&row.index) {
                    failing.insert(row.index);
                } else {
                    after.push(row.signature);
                }
            }
        }
        failing
    }

    /// Whether rows with these signatures fill all the columns that this one does.
    fn is_said(&self, row: &Row, after: &[usize]) -> bool {
        let signatures = &self.batch.signatures;
        let is_filled =
            |column: &usize| after.iter().any(|signature| signatures[*signature].contains(column));
        !after.is_empty() && signatures[row.signature].iter().all(is_filled)
    }

    /// All rows, those that fill the same columns together.
    pub(crate) fn by_signature(&self) -> Vec<Group<'a>> {
        let mut groups: BTreeMap<usize, Vec<&'a Row>> = BTreeMap::new();
        for row in self.rows() {
            groups.entry(row.signature).or_default().push(row);
        }
        let signatures = &self.batch.signatures;
        let group = |(at, rows): (usize, _)| Group { signature: &signatures[at], rows };
        groups.into_iter().map(group).collect()
    }

    /// The rows to be written, those that fill the same columns together.
    pub(crate) fn groups(&self) -> Vec<Group<'a>> {
        self.groups_without(&HashSet::new())
    }

    /// The same, as if there were no rows with these indices.
    ///
    /// Of each key the last row, and before it in their order those that fill columns which none after
    /// them does: what comes of it is what would come of writing one after the other. Where rows that fill
    /// different columns may be of one key, nobody knows, they are written one after the other.
    pub(crate) fn groups_without(&self, bad: &HashSet<u64>) -> Vec<Group<'a>> {
        let signatures = &self.batch.signatures;
        if self.batch.is_in_doubt() {
            let mut groups: Vec<Group<'a>> = Vec::new();
            for row in self.rows().iter().filter(|row| !bad.contains(&row.index)) {
                let signature = &signatures[row.signature];
                match groups.last_mut() {
                    Some(group) if group.signature == signature => group.rows.push(row),
                    _ => groups.push(Group { signature, rows: vec![row] }),
                }
            }
            return groups;
        }
        // By how many of their key are written after them, and then by their signature.
        let mut groups: BTreeMap<(Reverse<usize>, usize), Vec<&'a Row>> = BTreeMap::new();
        let mut after: Vec<usize> = Vec::new();
        for of_one_key in self.by_key() {
            after.clear();
            for row in of_one_key.filter(|row| !bad.contains(&row.index)) {
                if self.is_said(row, &after) {
                    continue;
                }
                groups.entry((Reverse(after.len()), row.signature)).or_default().push(row);
                after.push(row.signature);
            }
        }
        let group = |((_, at), rows): ((_, usize), _)| Group { signature: &signatures[at], rows };
        groups.into_iter().map(group).collect()
    }

    /// What is known of the job after this, of which so many failed.
    pub(crate) fn after(&self, before: &Progress, failed: u64) -> Progress {
        let count = self.to - self.from;
        Progress {
            total: before.total.max(self.batch.to),
            processed: self.to,
            success_count: before.success_count + count.saturating_sub(failed),
            failed_count: before.failed_count + failed,
            duplicate_count: before.duplicate_count + self.duplicates(),
            unknown_keys: before.unknown_keys.clone(),
        }
    }

    pub(crate) fn failed(&self, row: &Row, error: impl Into<String>) -> FailedItem {
        let data = self.batch.text(row).to_owned();
        FailedItem { index: row.index, data, error: error.into() }
    }
}

/// Whether keys that differ do so for sure: in what is known of them, wherever it is known of all.
fn are_apart(keys: &[&[key::Value<'_>]], width: usize) -> bool {
    let is_known = |at: &usize| !keys.iter().any(|key| key[*at].is_open());
    let known: Vec<usize> = (0..width).filter(is_known).collect();
    if known.len() == width {
        return true;
    }
    let mut first: HashMap<Vec<&key::Value<'_>>, &[key::Value<'_>]> = HashMap::new();
    keys.iter().all(|key| {
        let part = known.iter().map(|at| &key[*at]).collect();
        *first.entry(part).or_insert(key) == *key
    })
}

/// What one value of an element is within its text.
pub(crate) fn place_of(text: &str, value: &str) -> Range<usize> {
    let start = (value.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(keys: &[&str]) -> Batch {
        let mut batch = Batch::starting(10);
        for (place, key) in keys.iter().enumerate() {
            batch.push(10 + place as u64, key, &[(0, 0..key.len())], &[0]);
        }
        batch.to = 10 + keys.len() as u64;
        batch.close(&[Sameness::Text]);
        batch
    }

    #[test]
    fn the_last_of_one_key_is_written_and_rows_go_by_their_keys() {
        let batch = batch(&["\"b\"", "\"a\"", "\"b\"", "\"c\"", "\"a\""]);
        let groups = batch.whole().groups();
        let indices: Vec<u64> = groups[0].rows.iter().map(|row| row.index).collect();
        assert_eq!(indices, [14, 12, 13]);
        assert_eq!(batch.whole().duplicates(), 2);
        let others = batch.whole().groups_without(&HashSet::from([12, 13]));
        let indices: Vec<u64> = others[0].rows.iter().map(|row| row.index).collect();
        assert_eq!(indices, [14, 10], "the one before takes the place of one that is bad");
        let together = batch.whole().with_their_keys(&HashSet::from([10, 13]));
        assert_eq!(together, HashSet::from([10, 12, 13]));
    }

    #[test]
    fn a_row_before_the_last_of_its_key_is_written_first_where_it_says_more() {
        let mut batch = Batch::starting(0);
        for (index, columns) in [vec![0, 1], vec![0, 2], vec![0, 1], vec![0]].iter().enumerate() {
            let fields: Vec<_> = columns.iter().map(|column| (*column, 0..1)).collect();
            batch.push(index as u64, "7", &fields, &[0]);
        }
        batch.to = 4;
        batch.close(&[Sameness::Text]);
        let written: Vec<Vec<u64>> = batch
            .whole()
            .groups()
            .iter()
            .map(|group| group.rows.iter().map(|row| row.index).collect())
            .collect();
        assert_eq!(written, [[1], [2], [3]], "all of the first is said again by the third");
        assert_eq!(batch.whole().duplicates(), 3);
    }

    #[test]
    fn a_bad_row_fails_unless_a_later_one_of_its_key_says_as_much() {
        let mut batch = Batch::starting(0);
        for (index, columns) in [vec![0, 1], vec![0, 2], vec![0, 1], vec![0, 1]].iter().enumerate()
        {
            let fields: Vec<_> = columns.iter().map(|column| (*column, 0..1)).collect();
            batch.push(index as u64, "7", &fields, &[0]);
        }
        batch.to = 4;
        batch.close(&[Sameness::Text]);
        let failing = |bad: &[u64]| {
            let mut failing: Vec<u64> =
                batch.whole().failing(&bad.iter().copied().collect()).into_iter().collect();
            failing.sort_unstable();
            failing
        };
        assert_eq!(failing(&[0, 2]), [0; 0], "the last one says it all");
        assert_eq!(failing(&[1]), [1], "nobody else fills that column");
        assert_eq!(failing(&[0, 3]), [3], "the third takes the place of the last");
        assert_eq!(failing(&[0, 1, 2, 3]), [0, 1, 2, 3]);
        assert!(batch.whole().are_keys_whole(4) && !batch.whole().are_keys_whole(3));
    }

    #[test]
    fn parts_cover_a_batch_with_what_was_refused_in_it() {
        let mut batch = batch(&["1", "2", "3", "4", "5"]);
        let refused = |index| FailedItem { index, data: String::new(), error: String::new() };
        batch.to = 20;
        batch.refused = vec![refused(15), refused(19)];
        let parts = batch.whole().pieces(2);
        let ends: Vec<(u64, u64)> = parts.iter().map(|part| (part.from, part.to)).collect();
        assert_eq!(ends, [(10, 12), (12, 14), (14, 20)]);
        assert_eq!(parts.iter().map(|part| part.refused().len()).collect::<Vec<_>>(), [0, 0, 2]);
        assert_eq!(Batch::starting(3).whole().pieces(2).len(), 1);
        let last: Vec<_> = parts[1].pieces(1).iter().map(|part| (part.from, part.to)).collect();
        assert_eq!(last, [(12, 13), (13, 14)], "and parts of parts");
    }

    #[test]
    fn keys_that_are_one_value_are_one_key() {
        let elements = ["1", "5", "\"5\"", "5.0"];
        let mut batch = Batch::starting(0);
        for (index, text) in elements.iter().enumerate() {
            let fields: Vec<_> = (0..=index % 2).map(|column| (column, 0..text.len())).collect();
            batch.push(index as u64, text, &fields, &[0]);
        }
        batch.to = 4;
        batch.close(&[Sameness::Integer]);
        assert!(batch.is_certain);
        assert_eq!(batch.whole().duplicates(), 2);
        assert_eq!(indices(&batch), [vec![0], vec![3]]);
        batch.close(&[Sameness::Unknown]);
        assert!(batch.is_in_doubt());
        assert_eq!(indices(&batch), [vec![0], vec![1], vec![2], vec![3]], "one after the other");
    }

    #[test]
    fn keys_of_several_values_differ_where_one_of_them_does_for_sure() {
        let certain = |elements: &[[&str; 2]]| {
            let mut batch = Batch::starting(0);
            for (index, [one, other]) in elements.iter().enumerate() {
                let text = format!("{one}{other}");
                let fields = [(0, 0..one.len()), (1, one.len()..text.len())];
                batch.push(index as u64, &text, &fields, &[0, 1]);
            }
            batch.close(&[Sameness::Text, Sameness::Unknown]);
            batch.is_certain
        };
        assert!(certain(&[["\"a\"", "1"], ["\"b\"", "1.0"], ["\"a\"", "1"]]));
        assert!(!certain(&[["\"a\"", "1"], ["\"b\"", "1.0"], ["\"a\"", "1.0"]]));
    }

    fn indices(batch: &Batch) -> Vec<Vec<u64>> {
        let of_group = |group: &Group<'_>| group.rows.iter().map(|row| row.index).collect();
        batch.whole().groups().iter().map(of_group).collect()
    }
}
