//! Rows that a look from outside finds strange: a text where a number belongs, a required value that is
//! missing. The server decides, and says what is wrong with them; but it need not try all their
//! neighbours one by one to find them.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use uuid::Uuid;

use super::catalog::own_type;
use crate::batch::{Part, Row};
use crate::table::{Column, Table};
use crate::texts;

/// The indices of such rows, and of all that have a key of theirs: the last of a key must be written last.
pub(super) fn of(table: &Table, part: &Part<'_>) -> HashSet<u64> {
    let strange = part.rows().iter().filter(|row| is_strange(table, part, row));
    part.with_their_keys(&strange.map(|row| row.index).collect())
}

fn is_strange(table: &Table, part: &Part<'_>, row: &Row) -> bool {
    let signature = &part.batch.signatures[row.signature];
    let is_missing = |(place, column): (usize, &Column)| {
        column.is_required && !signature.contains(&place) && table.whole != Some(place)
    };
    let mut values = table.filled(signature).zip(texts::of(table, part, signature, row));
    table.columns.iter().enumerate().any(is_missing)
        || values.any(|(column, text)| match text {
            None => column.is_required,
            Some(text) => looks_wrong(&column.kind, &text),
        })
}

/// Whether a type may not take a text. Of types that are not known here nothing is said.
fn looks_wrong(kind: &str, text: &str) -> bool {
    let is_well = match own_type(kind) {
        "int2" => text.parse::<i16>().is_ok(),
        "int4" => text.parse::<i32>().is_ok(),
        "int8" => text.parse::<i64>().is_ok(),
        "numeric" | "float4" | "float8" => text.parse::<f64>().is_ok_and(f64::is_finite),
        "bool" => matches!(text, "true" | "false"),
        "uuid" => text.parse::<Uuid>().is_ok(),
        "date" => text.parse::<Date>().is_ok(),
        "timestamp" => text.parse::<DateTime>().is_ok(),
        "timestamptz" => text.parse::<Timestamp>().is_ok(),
        _ => true,
    };
    !is_well
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_does_not_fit_its_type_looks_wrong() {
        for (kind, well, wrong) in [
            ("int2", "-32768", "32768"),
            ("int4", "0", "1.5"),
            ("int8", "9223372036854775807", "none"),
            ("numeric", "-1.50", "none"),
            ("float8", "1e30", "Infinity"),
            ("bool", "true", "1"),
            ("uuid", "67e55044-10b1-426f-9247-bb680e5fe0c8", "67e55044"),
            ("date", "2026-11-16", "2026-02-30"),
            ("timestamp", "2026-11-16T12:00:00", "soon"),
            ("timestamptz", "2026-11-16T12:00:00Z", "2026-11-16T25:00:00Z"),
        ] {
            let kind = format!("pg_catalog.\"{kind}\"");
            assert!(!looks_wrong(&kind, well), "{kind} {well}");
            assert!(looks_wrong(&kind, wrong), "{kind} {wrong}");
        }
        assert!(!looks_wrong("pg_catalog.text", "anything"));
        assert!(!looks_wrong("public.mood", "anything"));
    }
}
