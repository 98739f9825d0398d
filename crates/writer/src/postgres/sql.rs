//! The statements that write rows. Their names and types are the catalog's.
//!
//! Values travel as text and are read by the input functions of their types: rows that are new by COPY,
//! others a column at a time, in a statement that a pooler passes on.

use std::fmt::Write;

use crate::table::{Column, Signature, Table};

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

/// Takes new rows in the text format of COPY.
pub(super) fn copy(table: &Table, signature: &Signature) -> String {
    let columns: Vec<&str> = table.filled(signature).map(|column| column.quoted.as_str()).collect();
    format!("COPY {} ({}) FROM STDIN", table.quoted, columns.join(", "))
}

/// Stores one row: the array `lavra.entry.fields`, whose first element is its signature's number.
fn of_entry(table: &Table, signature: &Signature) -> String {
    let values = table.filled(signature).enumerate().map(|(at, column)| {
        value(column, &format!("(lavra.entry.fields OPERATOR(pg_catalog.->>) {})", at + 1))
    });
    let values: Vec<String> = values.collect();
    insert(table, signature, &format!("VALUES ({})", values.join(", ")))
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

/// Stores rows one by one, each in a subtransaction of its own, and remembers those that fail.
///
/// They come and go by settings of the transaction, because a block has no parameters: `lavra.rows` has
/// the number of a signature and the values for each, `lavra.failed` what is wrong with which. What
/// is no row's fault ends it all.
pub(super) fn one_by_one(table: &Table, signatures: &[Signature], mark: &str) -> String {
    let mut cases = String::new();
    for (number, signature) in signatures.iter().enumerate() {
        let _infallible = writeln!(cases, "WHEN {number} THEN {};", of_entry(table, signature));
    }
    let not_of_rows = NOT_OF_ROWS.join("', '");
    format!(
        "DO ${mark}$
#variable_conflict use_column
<<lavra>>
DECLARE
    entry record;
    failed pg_catalog.jsonb[] := '{{}}';
BEGIN
    FOR entry IN
        SELECT e.fields, e.place
        FROM pg_catalog.jsonb_array_elements(
            pg_catalog.current_setting('lavra.rows')::pg_catalog.jsonb) WITH ORDINALITY AS e(fields, place)
        ORDER BY e.place
    LOOP
        BEGIN
            CASE (lavra.entry.fields OPERATOR(pg_catalog.->) 0)::pg_catalog.int4
            {cases}END CASE;
        EXCEPTION WHEN OTHERS OR ASSERT_FAILURE THEN
            IF pg_catalog.left(SQLSTATE, 2) IN ('{not_of_rows}') AND SQLSTATE <> '42501' THEN
                RAISE;
            END IF;
            lavra.failed := pg_catalog.array_append(lavra.failed,
                pg_catalog.jsonb_build_array(lavra.entry.place, SQLERRM));
        END;
    END LOOP;
    PERFORM pg_catalog.set_config('lavra.failed',
        pg_catalog.array_to_json(lavra.failed)::pg_catalog.text, true);
END
${mark}$"
    )
}
