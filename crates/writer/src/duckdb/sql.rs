//! The statements that write rows. Their names and types are the catalog's.

use crate::table::{Column, Signature, Table};

/// The elements of the JSON array `$1`, with their places.
const ITEMS: &str = "(SELECT unnest(list) AS item, unnest(range(len(list))) AS place \
                     FROM (SELECT CAST(CAST($1 AS JSON) AS JSON[]) AS list))";

pub(super) fn of_array(table: &Table, signature: &Signature) -> String {
    let into: Vec<&str> = table.filled(signature).map(|column| column.quoted.as_str()).collect();
    let mut values: Vec<String> =
        signature.iter().map(|at| value(&table.columns[*at], "CAST")).collect();
    if table.whole.is_some() {
        values.push("item".into());
    }
    format!(
        "INSERT INTO {} ({}) SELECT {} FROM {ITEMS}{}",
        table.quoted,
        into.join(", "),
        values.join(", "),
        table.on_conflict(signature, "now()")
    )
}

/// Which elements of the array hold what their columns do not take, and what.
pub(super) fn misfits(table: &Table, signature: &Signature) -> String {
    let mut reasons = Vec::new();
    for column in signature.iter().map(|at| &table.columns[*at]) {
        let there = format!("coalesce(json_type(item, {}), 'NULL') <> 'NULL'", pointer(column));
        let text = format!("could not convert the value of {:?} to {}", column.name, column.kind);
        reasons.push(format!(
            "WHEN {there} AND {} IS NULL THEN {}",
            value(column, "TRY_CAST"),
            literal(&text)
        ));
        if column.is_required {
            let text = format!("NOT NULL constraint failed: {}", column.name);
            reasons.push(format!("WHEN NOT ({there}) THEN {}", literal(&text)));
        }
    }
    let absent = table.columns.iter().enumerate().find(|(at, column)| {
        column.is_required && !signature.contains(at) && table.whole != Some(*at)
    });
    if let Some((_, column)) = absent {
        let text = format!("NOT NULL constraint failed: {}", column.name);
        reasons.push(format!("WHEN true THEN {}", literal(&text)));
    }
    if reasons.is_empty() {
        reasons.push("WHEN false THEN ''".into());
    }
    format!(
        "SELECT place, reason FROM (SELECT place, CASE {} END AS reason FROM {ITEMS}) \
         WHERE reason IS NOT NULL ORDER BY place",
        reasons.join(" ")
    )
}

/// The value of a column in an element.
fn value(column: &Column, cast: &str) -> String {
    let pointer = pointer(column);
    if column.is_json {
        return format!(
            "CASE WHEN json_type(item, {pointer}) = 'NULL' THEN NULL ELSE json_extract(item, {pointer}) END"
        );
    }
    let part = if column.is_list { "json_extract" } else { "json_extract_string" };
    let mut found = format!("{part}(item, {pointer})");
    if is_whole(&column.kind) {
        // DuckDB would round 1.5 to 2.
        let (text, no_number) = if column.is_list {
            (format!("CAST({found} AS VARCHAR)"), "to_json('no whole numbers')")
        } else {
            (found.clone(), "'no whole number'")
        };
        found =
            format!("CASE WHEN regexp_matches({text}, '[.eE]') THEN {no_number} ELSE {found} END");
    }
    format!("{cast}({found} AS {})", column.kind)
}

/// Whether a type is one of whole numbers, or of lists of them.
fn is_whole(kind: &str) -> bool {
    let each = kind.split('[').next().unwrap_or(kind);
    let each = each.strip_prefix('U').unwrap_or(each);
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"].contains(&each)
}

/// Where a column's value stands in an element, as a JSON pointer.
fn pointer(column: &Column) -> String {
    literal(&format!("/{}", column.name.replace('~', "~0").replace('/', "~1")))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
