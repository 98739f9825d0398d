//! The statements that write rows. Their names and types are the catalog's.
//!
//! Values travel as text and are read by the input functions of their types: rows that are new by COPY,
//! others a column at a time, in a statement that a pooler passes on.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::table::{Check, Column, Signature, Table};

/// The classes of errors by which the server speaks of itself, or of a table. What has another one is
/// about a row, also what a trigger makes up.
pub(super) const NOT_OF_ROWS: [&str; 19] = [
    "08", "25", "26", "28", "2D", "34", "3B", "3D", "3F", "40", "42", "53", "55", "57", "58", "72",
    "F0", "HV", "XX",
];

/// Stores rows that fill the same columns; each parameter has the values of one.
pub(super) fn of_columns(table: &Table, signature: &Signature) -> String {
    let count = table.filled(signature).count();
    let numbers = || 1..=count;
    // In a list of columns they run side by side; in FROM all rows would be kept before the first is used.
    let columns: Vec<String> =
        numbers().map(|n| format!("pg_catalog.unnest(${n}) AS v{n}")).collect();
    let values = table.filled(signature).zip(numbers());
    let values: Vec<String> = values.map(|(column, n)| value(column, &format!("r.v{n}"))).collect();
    let rows = format!("SELECT {} FROM (SELECT {}) AS r", values.join(", "), columns.join(", "));
    insert(table, signature, &rows)
}

/// Tells which of some rows a CHECK refuses, and the columns that it has to know: the first parameter has
/// numbers of the rows, each other one the values of one of these. Nothing where no CHECK is about them.
pub(super) fn refused(table: &Table, signature: &Signature) -> Option<(String, BTreeSet<usize>)> {
    let is_filled = |column: &usize| signature.contains(column);
    let checks: Vec<&Check> =
        table.demands.checks.iter().filter(|check| check.columns.iter().all(is_filled)).collect();
    let columns: BTreeSet<usize> =
        checks.iter().flat_map(|check| &check.columns).copied().collect();
    let (mut texts, mut values) = (String::new(), String::new());
    for (column, n) in columns.iter().map(|at| &table.columns[*at]).zip(2..) {
        let _infallible = write!(texts, ", pg_catalog.unnest(${n}) AS v{n}");
        let value = value(column, &format!("r.v{n}"));
        let _infallible = write!(values, ", {value} AS {}", column.quoted);
    }
    let fails: Vec<String> =
        checks.iter().map(|check| format!("NOT ({})", check.condition)).collect();
    let sql = format!(
        "SELECT \"the row\" FROM (
             SELECT r.n AS \"the row\"{values} FROM (SELECT pg_catalog.unnest($1) AS n{texts}) AS r
         ) AS t WHERE {}",
        fails.join(" OR ")
    );
    (!checks.is_empty()).then_some((sql, columns))
}

/// Takes new rows in the text format of COPY.
pub(super) fn copy(table: &Table, signature: &Signature) -> String {
    let columns: Vec<&str> = table.filled(signature).map(|column| column.quoted.as_str()).collect();
    format!("COPY {} ({}) FROM STDIN", table.quoted, columns.join(", "))
}

/// Stores the rows of `lavra.parts[lavra.at]`, an array of arrays of values.
fn of_part(table: &Table, signature: &Signature) -> String {
    let values = table
        .filled(signature)
        .enumerate()
        .map(|(at, column)| value(column, &format!("(r.fields OPERATOR(pg_catalog.->>) {at})")));
    let values: Vec<String> = values.collect();
    let rows = format!(
        "SELECT {} FROM pg_catalog.jsonb_array_elements(lavra.parts[lavra.at]) AS r(fields)",
        values.join(", ")
    );
    insert(table, signature, &rows)
}

/// A text as a value of the column; what JSON writes otherwise than SQL (arrays, composites) by way of
/// JSON.
fn value(column: &Column, text: &str) -> String {
    let kind = &column.kind;
    if column.is_list {
        return format!(
            "(SELECT x.v FROM pg_catalog.jsonb_to_record(pg_catalog.jsonb_build_object('v', \
             {text}::pg_catalog.jsonb)) AS x(v {kind}))"
        );
    }
    format!("{text}::{kind}")
}

fn insert(table: &Table, signature: &Signature, rows: &str) -> String {
    let into: Vec<&str> = table.filled(signature).map(|column| column.quoted.as_str()).collect();
    format!(
        "INSERT INTO {} AS t ({}) {rows}{}",
        table.quoted,
        into.join(", "),
        table.on_conflict(signature, "pg_catalog.now()")
    )
}

/// Stores rows in runs, each in a subtransaction of its own, and the rows of a run that fails each in its
/// own; remembers those that fail.
///
/// They come and go by settings of the transaction, because a block has no parameters: `lavra.rows` has
/// for each run the number of a signature, the place of its first row, and the values of all; and
/// `lavra.failed` what is wrong with which, and its SQLSTATE. What is no row's fault ends it all.
pub(super) fn in_runs(table: &Table, signatures: &[Signature], mark: &str) -> String {
    let mut cases = String::new();
    for (number, signature) in signatures.iter().enumerate() {
        let _infallible = writeln!(cases, "WHEN {number} THEN {};", of_part(table, signature));
    }
    let not_of_rows = NOT_OF_ROWS.join("', '");
    format!(
        "DO ${mark}$
#variable_conflict use_column
<<lavra>>
DECLARE
    run pg_catalog.jsonb;
    parts pg_catalog.jsonb[];
    at pg_catalog.int4;
    failed pg_catalog.jsonb[] := '{{}}';
BEGIN
    FOR run IN
        SELECT e.run
        FROM pg_catalog.jsonb_array_elements(
            pg_catalog.current_setting('lavra.rows')::pg_catalog.jsonb) WITH ORDINALITY AS e(run, place)
        ORDER BY e.place
    LOOP
        lavra.parts := ARRAY[lavra.run OPERATOR(pg_catalog.->) 2];
        lavra.at := 1;
        WHILE lavra.at <= pg_catalog.cardinality(lavra.parts) LOOP
            BEGIN
                CASE (lavra.run OPERATOR(pg_catalog.->) 0)::pg_catalog.int4
                {cases}END CASE;
            EXCEPTION WHEN OTHERS OR ASSERT_FAILURE THEN
                IF pg_catalog.left(SQLSTATE, 2) IN ('{not_of_rows}') AND SQLSTATE <> '42501' THEN
                    RAISE;
                END IF;
                IF pg_catalog.jsonb_array_length(lavra.parts[lavra.at]) > 1 THEN
                    lavra.parts := ARRAY(
                        SELECT pg_catalog.jsonb_build_array(r.fields)
                        FROM pg_catalog.jsonb_array_elements(lavra.parts[lavra.at])
                            WITH ORDINALITY AS r(fields, place)
                        ORDER BY r.place);
                    lavra.at := 0;
                ELSE
                    lavra.failed := pg_catalog.array_append(lavra.failed,
                        pg_catalog.jsonb_build_array(
                            (lavra.run OPERATOR(pg_catalog.->) 1)::pg_catalog.int4 + lavra.at - 1,
                            SQLERRM, SQLSTATE));
                END IF;
            END;
            lavra.at := lavra.at + 1;
        END LOOP;
    END LOOP;
    PERFORM pg_catalog.set_config('lavra.failed',
        pg_catalog.array_to_json(lavra.failed)::pg_catalog.text, true);
END
${mark}$"
    )
}
