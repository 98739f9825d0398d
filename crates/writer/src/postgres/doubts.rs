//! Rows that hardly can be stored: with a text where a number belongs, without a value that is required, or
//! such that the server, asked for it, says a CHECK refuses them. It decides in the end, and says what is
//! wrong with them; but it need not try all their neighbours one by one to find them.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use lavra_db::Pg;
use lavra_db::tokio_postgres::types::Type;
use uuid::Uuid;

use super::catalog::own_type;
use super::sql;
use crate::batch::{Group, Part, Row};
use crate::table::{Column, Table};
use crate::texts;

/// The indices of such rows, and of all that have a key of theirs: the last of a key must be written last.
/// Where there are more than `most` the server is not asked.
pub(super) async fn of(pg: &Pg, table: &Table, part: &Part<'_>, most: usize) -> HashSet<u64> {
    let strange = part.rows().iter().filter(|row| is_strange(table, part, row));
    let mut doubts = part.with_their_keys(&strange.map(|row| row.index).collect());
    if doubts.len() <= most {
        for group in part.by_signature() {
            let refused = refused(pg, table, part, &group, &doubts).await;
            doubts.extend(part.with_their_keys(&refused));
        }
    }
    doubts
}

/// Those of a group that the server says a CHECK refuses. It may fail as the rows do: then nothing is known.
async fn refused(
    pg: &Pg,
    table: &Table,
    part: &Part<'_>,
    group: &Group<'_>,
    known: &HashSet<u64>,
) -> HashSet<u64> {
    let signature = group.signature;
    let Some((sql, wanted)) = sql::refused(table, signature) else { return HashSet::new() };
    let place = |column| signature.iter().position(|filled| filled == column);
    let places: Vec<usize> = wanted.iter().filter_map(place).collect();
    let (mut indices, mut columns) = (Vec::new(), vec![Vec::new(); places.len()]);
    for row in group.rows.iter().filter(|row| !known.contains(&row.index)) {
        indices.push(row.index as i64);
        let texts: Vec<_> = texts::of(table, part, signature, row).collect();
        for (column, place) in columns.iter_mut().zip(&places) {
            column.push(texts[*place].clone());
        }
    }
    let mut params: Vec<lavra_db::Param<'_>> = vec![(&indices as _, Type::INT8_ARRAY)];
    params.extend(columns.iter().map(|column| (column as _, Type::TEXT_ARRAY)));
    let told = pg.query("look for rows that a CHECK refuses", &sql, &params).await;
    let told = told.unwrap_or_default();
    let refused = told.iter().filter_map(|row| row.try_get::<_, i64>(0).ok());
    refused.map(|index| index as u64).collect()
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
