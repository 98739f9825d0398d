//! Which pages of a window are missing: promised, and not stored as promised.
//!
//! A stored page counts if it was fetched in this generation, under the total that the window has
//! now, and has as many records as that total gives it. So a total that moved makes every page
//! from before suspect, and when nothing is missing the records add up to the total.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::model::{Stored, Totals};

/// The same of the task `$1` as a question to a database, for both engines: `gaps` has the first and
/// the last page of each run of missing ones. How large a page is, a response of the task says.
pub(crate) const GAPS: &str = "
WITH size AS (
    SELECT r.page_size FROM psa.{source}_pages p
    JOIN psa.{source}_raw_responses r ON r.id = p.response_id
    WHERE p.task_id = $1 LIMIT 1
), promised AS (
    SELECT w.number, w.base, w.total_pages, w.total_records, t.generation
    FROM psa.{source}_extraction_windows w
    JOIN psa.{source}_extraction_tasks t ON t.task_id = w.task_id
    WHERE w.task_id = $1 AND w.total_pages > 0 AND w.total_records IS NOT NULL
), done AS (
    SELECT w.number, p.page
    FROM promised w CROSS JOIN size s
    JOIN psa.{source}_pages p ON p.page > w.base AND p.page <= w.base + w.total_pages
    WHERE p.task_id = $1 AND p.generation = w.generation AND p.total_records = w.total_records
      AND p.records = least(greatest(
          w.total_records - (p.page - w.base - 1)::bigint * s.page_size, 0), s.page_size)
), edges AS (
    SELECT number, page FROM done
    UNION ALL SELECT number, base FROM promised
    UNION ALL SELECT number, base + total_pages + 1 FROM promised
), runs AS (
    SELECT lag(page) OVER (PARTITION BY number ORDER BY page) + 1 AS first, page - 1 AS last
    FROM edges
), gaps AS (
    SELECT first, last FROM runs WHERE first <= last
)";

/// The missing pages of a window, as ranges: a month may have 100,000.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing(Vec<RangeInclusive<i64>>);

impl Missing {
    /// `stored` are the pages of the window, by their number within it.
    pub fn of(
        totals: Totals,
        page_size: i64,
        generation: i32,
        stored: &BTreeMap<i64, Stored>,
    ) -> Self {
        let counts = |page: i64, stored: &Stored| {
            stored.generation == generation
                && stored.total_records == totals.records
                && stored.records == totals.expected(page, page_size)
        };
        let done = stored.iter().filter(|(page, stored)| counts(**page, stored)).map(|(p, _)| *p);
        let (mut ranges, mut next) = (Vec::new(), 1);
        for page in done.take_while(|page| *page <= totals.pages) {
            if page > next {
                ranges.push(next..=page - 1);
            }
            next = page + 1;
        }
        if next <= totals.pages {
            ranges.push(next..=totals.pages);
        }
        Self(ranges)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn count(&self) -> i64 {
        self.0.iter().map(|range| range.end() - range.start() + 1).sum()
    }

    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<i64>> + '_ {
        self.0.iter().cloned()
    }

    pub fn pages(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().cloned().flatten()
    }

    /// Takes the first one out.
    pub fn pop(&mut self) -> Option<i64> {
        let first = self.0.first_mut()?;
        let page = *first.start();
        if first.start() == first.end() {
            self.0.remove(0);
        } else {
            *first = page + 1..=*first.end();
        }
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn stored(page: i64, records: i64, total_records: i64, generation: i32) -> (i64, Stored) {
        (page, Stored { page, records, total_records, generation })
    }

    #[test]
    fn what_was_stored_otherwise_than_promised_is_missing() {
        let totals = Totals::of(25, 10);
        let pages = BTreeMap::from([
            stored(1, 10, 25, 1),
            stored(2, 9, 25, 1),
            stored(3, 5, 25, 1),
            stored(4, 1, 31, 1),
        ]);
        let missing = Missing::of(totals, 10, 1, &pages);
        assert_eq!(missing.pages().collect::<Vec<_>>(), [2], "one record short");
        let grown = Missing::of(Totals::of(31, 10), 10, 1, &pages);
        assert_eq!(grown.pages().collect::<Vec<_>>(), [1, 2, 3], "fetched under another total");
        assert_eq!(Missing::of(totals, 10, 2, &pages).count(), 3, "of another generation");
        assert!(Missing::of(Totals::of(0, 10), 10, 1, &pages).is_empty());
    }

    proptest! {
        #[test]
        fn missing_and_done_are_all_pages(pages in 0_i64..200, done in prop::collection::btree_set(1_i64..220, 0..80)) {
            let totals = Totals::of(pages * 10, 10);
            let all: BTreeMap<_, _> = done.iter().map(|page| stored(*page, 10, totals.records, 1)).collect();
            let mut missing = Missing::of(totals, 10, 1, &all);
            let expected: BTreeSet<i64> = (1..=pages).filter(|page| !done.contains(page)).collect();
            prop_assert_eq!(missing.pages().collect::<BTreeSet<_>>(), expected.clone());
            prop_assert_eq!(missing.count(), expected.len() as i64);
            let popped: Vec<i64> = std::iter::from_fn(|| missing.pop()).collect();
            prop_assert_eq!(popped, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
