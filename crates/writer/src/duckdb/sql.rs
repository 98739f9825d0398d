//! The statements that write rows. Their names and types are the catalog's.

use crate::table::{Check, Column, Signature, Table};

/// What is said of a row whose key is another one's, before the key.
pub(super) const DUPLICATE: &str = "duplicate key, against a PRIMARY KEY or UNIQUE constraint: ";

/// The rows of so many columns, with their places. Each parameter is a JSON array with the texts of one
/// column: what is a number in JSON is one of at most 17 digits to DuckDB.
fn rows(columns: usize) -> String {
    let each =
        |form: &dyn Fn(usize) -> String| (1..=columns).map(form).collect::<Vec<_>>().join(", ");
    let lists = each(&|n| format!("CAST(CAST(${n} AS JSON) AS VARCHAR[]) AS l{n}"));
    let values = each(&|n| format!("unnest(l{n}) AS {}", text(n)));
    format!("(SELECT {values}, unnest(range(len(l1))) AS \"#at\" FROM (SELECT {lists}))")
}

/// The text of a column, by its number.
fn text(n: usize) -> String {
    format!("\"#{n}\"")
}

/// Stores rows that fill the same columns. Where `is_certain` does not say that each has a key of its own,
/// the last one of a key: of two in one statement DuckDB would take the first, and say nothing.
pub(super) fn of_columns(table: &Table, signature: &Signature, is_certain: bool) -> String {
    let into: Vec<&str> = table.filled(signature).map(|column| column.quoted.as_str()).collect();
    let values = table.filled(signature).zip(1..);
    let values: Vec<String> = values.map(|(column, n)| value(column, n, "CAST")).collect();
    format!(
        "INSERT INTO {} ({}) SELECT {} FROM {}{}{}",
        table.quoted,
        into.join(", "),
        values.join(", "),
        rows(into.len()),
        if is_certain { String::new() } else { last_of_key(table, signature) },
        table.on_conflict(signature, "now()")
    )
}

fn last_of_key(table: &Table, signature: &Signature) -> String {
    let of_key = signature.iter().zip(1..).filter(|(at, _)| table.key.contains(at));
    let key = of_key.map(|(at, n)| value(&table.columns[*at], n, "CAST"));
    let key: Vec<String> = key.collect();
    let key = key.join(", ");
    format!(" QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY \"#at\" DESC) = 1")
}

/// Of each row its place, why the table would refuse it (what its columns do not take,
/// what a condition forbids, a key that is there already), and, for an insert, its unique keys.
pub(super) fn judged(table: &Table, signature: &Signature) -> String {
    let mut reasons = Vec::new();
    for (column, n) in signature.iter().map(|at| &table.columns[*at]).zip(1..) {
        let there = format!("{} IS NOT NULL", text(n));
        let text = format!("could not convert the value of {:?} to {}", column.name, column.kind);
        reasons.push(format!(
            "WHEN {there} AND {} IS NULL THEN {}",
            value(column, n, "TRY_CAST"),
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
    let mut refusals: Vec<String> = table
        .demands
        .checks
        .iter()
        .map(|Check { condition, .. }| {
            let text = format!("CHECK constraint failed: {condition}");
            format!("WHEN NOT ({condition}) THEN {}", literal(&text))
        })
        .collect();
    let mut keys = Vec::new();
    if table.key.is_empty() {
        for key in &table.demands.unique {
            let each = |form: &dyn Fn(&Column) -> String, between: &str| {
                key.iter().map(|at| form(&table.columns[*at])).collect::<Vec<_>>().join(between)
            };
            let name = |column: &Column| literal(&column.name);
            let told = |column: &Column| format!("{}, {}::VARCHAR", name(column), column.quoted);
            let told = format!("CAST(json_object({}) AS VARCHAR)", each(&told, ", "));
            let same = |column: &Column| format!("t.{0} = new.{0}", column.quoted);
            refusals.push(format!(
                "WHEN EXISTS (SELECT 1 FROM {} AS t WHERE {}) THEN {} || {told}",
                table.quoted,
                each(&same, " AND "),
                literal(DUPLICATE)
            ));
            let absent = each(&|column| format!("{} IS NULL", column.quoted), " OR ");
            keys.push(format!("CASE WHEN {absent} THEN NULL ELSE {told} END"));
        }
    }
    let mut columns: Vec<String> = vec!["\"#at\" AS \"#place\"".into()];
    columns.push(format!("{} AS \"#reason\"", case(&reasons)));
    columns.extend(table.demands.columns().into_iter().map(|at| {
        let column = &table.columns[at];
        let filled = signature.iter().chain(&table.whole).position(|place| *place == at);
        let value = match &column.default {
            _ if filled.is_some() => value(column, filled.unwrap_or_default() + 1, "TRY_CAST"),
            Some(default) => format!("CAST({default} AS {})", column.kind),
            None => format!("CAST(NULL AS {})", column.kind),
        };
        format!("{value} AS {}", column.quoted)
    }));
    format!(
        "SELECT \"#place\", coalesce(\"#reason\", {}), \
             CAST(to_json(CAST([{}] AS VARCHAR[])) AS VARCHAR) \
         FROM (SELECT {} FROM {}) AS new ORDER BY 1",
        case(&refusals),
        keys.join(", "),
        columns.join(", "),
        rows(table.filled(signature).count())
    )
}

fn case(branches: &[String]) -> String {
    if branches.is_empty() {
        return "CAST(NULL AS VARCHAR)".into();
    }
    format!("CASE {} END", branches.join(" "))
}

/// The value of a column, from the text with this number.
fn value(column: &Column, n: usize, cast: &str) -> String {
    let text = text(n);
    if column.is_json {
        return format!("CAST({text} AS JSON)");
    }
    let mut found = text.clone();
    if column.is_list {
        found = format!("CAST({text} AS JSON)");
    } else if is_whole(&column.kind) {
        // DuckDB would round 1.5 to 2.
        found = format!(
            "CASE WHEN regexp_matches({text}, '[.eE]') THEN 'no whole number' ELSE {text} END"
        );
    }
    format!("{cast}({found} AS {})", column.kind)
}

/// Whether a type is one of whole numbers.
pub(super) fn is_whole(kind: &str) -> bool {
    let kind = kind.strip_prefix('U').unwrap_or(kind);
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"].contains(&kind)
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
