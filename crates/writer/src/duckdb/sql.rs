//! The statements that write rows. Their names and types are the catalog's.

use crate::table::{Check, Column, Signature, Table};

/// What is said of a row whose key is another one's, before the key.
pub(super) const DUPLICATE: &str = "duplicate key, against a PRIMARY KEY or UNIQUE constraint: ";

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

/// Of each element of the array its place, why the table would refuse it (what its columns do not take,
/// what a condition forbids, a key that is there already), and, for an insert, its unique keys.
pub(super) fn judged(table: &Table, signature: &Signature) -> String {
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
    let mut columns: Vec<String> = vec!["place AS \"#place\"".into()];
    columns.push(format!("{} AS \"#reason\"", case(&reasons)));
    columns.extend(table.demands.columns().into_iter().map(|at| {
        let column = &table.columns[at];
        let value = match &column.default {
            _ if signature.contains(&at) => value(column, "TRY_CAST"),
            _ if table.whole == Some(at) => "item".into(),
            Some(default) => format!("CAST({default} AS {})", column.kind),
            None => format!("CAST(NULL AS {})", column.kind),
        };
        format!("{value} AS {}", column.quoted)
    }));
    format!(
        "SELECT \"#place\", coalesce(\"#reason\", {}), \
             CAST(to_json(CAST([{}] AS VARCHAR[])) AS VARCHAR) \
         FROM (SELECT {} FROM {ITEMS}) AS new ORDER BY 1",
        case(&refusals),
        keys.join(", "),
        columns.join(", ")
    )
}

fn case(branches: &[String]) -> String {
    if branches.is_empty() {
        return "CAST(NULL AS VARCHAR)".into();
    }
    format!("CASE {} END", branches.join(" "))
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
        let (text, otherwise) = if column.is_list {
            (format!("CAST({found} AS VARCHAR)"), "to_json('no whole numbers')".into())
        } else {
            let is_whole = format!(
                "json_type(item, {pointer}) = 'DOUBLE' AND regexp_matches({found}, '^[-0-9]+[.]0+$')"
            );
            let whole = format!("split_part({found}, '.', 1)");
            (found.clone(), format!("CASE WHEN {is_whole} THEN {whole} ELSE 'no whole number' END"))
        };
        found =
            format!("CASE WHEN regexp_matches({text}, '[.eE]') THEN {otherwise} ELSE {found} END");
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
