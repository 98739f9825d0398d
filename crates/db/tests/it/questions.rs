//! Questions in SQL: answered as columns and rows, and able to change nothing.

use std::time::{Duration, Instant};

use lavra_db::{Database, Secrets};
use serde_json::json;

use crate::support::place::{Place, on_each_engine};

on_each_engine!(
    columns_and_rows_come_in_order,
    columns_may_have_any_usual_name,
    more_rows_than_asked_for_are_cut_and_said_so,
    what_is_not_one_select_is_refused,
    who_asks_wrongly_is_told_of_the_question_and_not_of_what_we_put_around_it,
    what_takes_too_long_is_ended,
);

async fn columns_and_rows_come_in_order(place: Place) {
    let database = place.ground().await;
    let sql = "SELECT 2 AS zeta, 'text' AS alpha, NULL AS middle UNION ALL
               SELECT 1, 'more', NULL ORDER BY zeta; ";
    let answer = database.ask(sql, 10).await.unwrap();
    assert_eq!(answer.columns, ["zeta", "alpha", "middle"]);
    let expected = [[json!(1), json!("more"), json!(null)], [json!(2), json!("text"), json!(null)]];
    assert_eq!(answer.rows, expected);
    assert!(!answer.truncated);
}

async fn columns_may_have_any_usual_name(place: Place) {
    let database = place.ground().await;
    for name in ["answer", "row", "value", "question"] {
        let answer = database.ask(&format!("SELECT 42 AS \"{name}\""), 1).await.unwrap();
        assert_eq!((answer.columns, answer.rows), (vec![name.to_owned()], vec![vec![json!(42)]]));
    }
}

async fn more_rows_than_asked_for_are_cut_and_said_so(place: Place) {
    let database = place.ground().await;
    let sql = "SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3";
    let answer = database.ask(sql, 2).await.unwrap();
    assert_eq!((answer.rows.len(), answer.truncated), (2, true));
    let answer = database.ask(sql, 3).await.unwrap();
    assert_eq!((answer.rows.len(), answer.truncated), (3, false));
}

async fn is_there(database: &Database) -> bool {
    let keyring = lavra_db::Keyring::parse(&lavra_db::Keyring::generate().into()).unwrap();
    Secrets::new(database.clone(), keyring).list().await.is_ok()
}

async fn what_is_not_one_select_is_refused(place: Place) {
    let database = place.ground().await;
    for sql in [
        "",
        " ; ",
        "DROP TABLE lavra.secrets",
        "SELECT 1; DROP TABLE lavra.secrets",
        "SELECT 1) AS answer; DROP TABLE lavra.secrets; --",
        "SELECT 1) AS answer; COMMIT; DROP TABLE lavra.secrets; --",
        "DELETE FROM lavra.secrets RETURNING name",
        "CREATE TABLE lavra.more AS SELECT 1",
        "COMMIT",
    ] {
        let answer = database.ask(sql, 10).await;
        assert!(answer.is_err(), "{sql:?} was answered: {answer:?}");
    }
    assert!(is_there(&database).await, "the table is gone");
    assert!(database.ask("SELECT 1 AS n", 1).await.is_ok(), "nothing works any more");
}

async fn who_asks_wrongly_is_told_of_the_question_and_not_of_what_we_put_around_it(place: Place) {
    let database = place.ground().await;
    let said = async |sql: &str| database.ask(sql, 10).await.unwrap_err().to_string();
    for sql in ["DROP TABLE x", "delete from lavra.secrets", "CREATE TABLE x AS SELECT 1"] {
        let said = said(sql).await;
        assert!(said.contains("must be one SELECT"), "{sql}: {said}");
    }
    for (sql, part) in [
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT nothing FROM lavra.secrets", "nothing"),
        ("SELECT CAST(name AS INTEGER) AS n FROM (SELECT 'x' AS name) AS names", "x"),
        ("SELEC 1", "SELEC"),
    ] {
        let said = said(sql).await;
        assert!(said.contains(part) && !said.contains("lavra_whole_row"), "{sql}: {said}");
    }
}

async fn what_takes_too_long_is_ended(place: Place) {
    let database = place.ground().await;
    let sql = "WITH RECURSIVE digit(n) AS (
                   SELECT 0 UNION ALL SELECT n + 1 FROM digit WHERE n < 99)
               SELECT count(*) AS n FROM digit a, digit b, digit c, digit d, digit e, digit f, digit g
               WHERE a.n + b.n + c.n + d.n + e.n + f.n + g.n = -1";
    let begun = Instant::now();
    // More often than there are readers: none of them is lost.
    for _ in 0..3 {
        let error = database.ask_within(Duration::from_millis(300), sql, 1).await.unwrap_err();
        assert!(error.to_string().contains("longer than 300ms"), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    assert!(database.ask("SELECT 1 AS n", 1).await.is_ok(), "nothing works any more");
}
