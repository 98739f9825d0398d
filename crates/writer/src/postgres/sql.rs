//! The statements that write rows. Their names and types are the catalog's.

use std::fmt::Write;

use crate::table::{Column, Signature, Table};

/// Stores the elements of the JSON array `$1`, all of which fill the same columns.
pub(super) fn of_array(table: &Table, signature: &Signature) -> String {
    let definitions = definitions(table, signature);
    let from = match (signature.is_empty(), table.whole) {
        (false, None) => format!("pg_catalog.jsonb_to_recordset($1) AS r({definitions})"),
        (true, _) => "pg_catalog.jsonb_array_elements($1) AS r(lavra_whole)".to_owned(),
        // Both walk through the array side by side.
        (false, Some(_)) => format!(
            "ROWS FROM (pg_catalog.jsonb_to_recordset($1) AS ({definitions}), \
             pg_catalog.jsonb_array_elements($1)) AS r({}, lavra_whole)",
            names(table, signature)
        ),
    };
    insert(table, signature, "r.lavra_whole", &from)
}

/// Stores one element, the variable `lavra.item`.
fn of_item(table: &Table, signature: &Signature) -> String {
    let from = if signature.is_empty() {
        "(SELECT 1) AS r".to_owned()
    } else {
        let definitions = definitions(table, signature);
        format!("pg_catalog.jsonb_to_record(lavra.item) AS r({definitions})")
    };
    insert(table, signature, "lavra.item", &from)
}

fn names(table: &Table, signature: &Signature) -> String {
    let names: Vec<&str> = signature.iter().map(|at| table.columns[*at].quoted.as_str()).collect();
    names.join(", ")
}

fn definitions(table: &Table, signature: &Signature) -> String {
    let of = |column: &Column| format!("{} {}", column.quoted, column.kind);
    let all: Vec<String> = signature.iter().map(|at| of(&table.columns[*at])).collect();
    all.join(", ")
}

fn insert(table: &Table, signature: &Signature, whole: &str, from: &str) -> String {
    let into: Vec<&str> = table.filled(signature).map(|column| column.quoted.as_str()).collect();
    let mut values: Vec<String> =
        signature.iter().map(|at| format!("r.{}", table.columns[*at].quoted)).collect();
    values.extend(table.whole.map(|at| format!("{whole}::{}", table.columns[at].kind)));
    format!(
        "INSERT INTO {} AS t ({}) SELECT {} FROM {from}{}",
        table.quoted,
        into.join(", "),
        values.join(", "),
        table.on_conflict(signature, "pg_catalog.now()")
    )
}

/// Stores elements one by one, each in a subtransaction of its own, and remembers those that fail.
///
/// They come and go by settings of the transaction, because a block has no parameters: `lavra.rows` has
/// pairs of a signature's number and an element's text, `lavra.failed` what is wrong with which.
/// What is no row's fault ends it all.
pub(super) fn one_by_one(table: &Table, signatures: &[Signature], mark: &str) -> String {
    let mut cases = String::new();
    for (number, signature) in signatures.iter().enumerate() {
        let _infallible = writeln!(cases, "WHEN {number} THEN {};", of_item(table, signature));
    }
    format!(
        "DO ${mark}$
#variable_conflict use_column
<<lavra>>
DECLARE
    entry record;
    item pg_catalog.jsonb;
    failed pg_catalog.jsonb[] := '{{}}';
BEGIN
    FOR entry IN
        SELECT e.pair, e.place
        FROM pg_catalog.jsonb_array_elements(
            pg_catalog.current_setting('lavra.rows')::pg_catalog.jsonb) WITH ORDINALITY AS e(pair, place)
        ORDER BY e.place
    LOOP
        BEGIN
            lavra.item := (lavra.entry.pair OPERATOR(pg_catalog.->>) 1)::pg_catalog.jsonb;
            CASE (lavra.entry.pair OPERATOR(pg_catalog.->>) 0)::pg_catalog.int4
            {cases}END CASE;
        EXCEPTION WHEN OTHERS THEN
            IF pg_catalog.left(SQLSTATE, 2) NOT IN ('0A', '21', '22', '23', '44', '54', 'P0') THEN
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
