//! LISTEN: live where notifications arrive, and known not to be where they do not.

use std::time::Duration;

use lavra_db::tokio_postgres::types::{ToSql, Type};
use lavra_db::{CopyIn, Listener, Param, Pg};

use crate::support::place::Server;
use crate::support::until;

const CHANNEL: &str = "kodus_workflow_tasks";
const SOON: Duration = Duration::from_secs(10);

async fn notify(pg: &Pg, payload: &str) {
    let params = [(&CHANNEL as _, Type::TEXT), (&payload as _, Type::TEXT)];
    pg.query("notify", "SELECT pg_notify($1, $2)", &params).await.unwrap();
}

async fn next(listener: &mut Listener) -> String {
    let next = tokio::time::timeout(SOON, listener.next());
    next.await.expect("nothing arrived").expect("the listener has ended")
}

async fn live(listener: &Listener) {
    until("live", SOON, || async { listener.is_live().then_some(()) }).await;
}

#[tokio::test]
async fn a_listener_hears_what_others_send() {
    let server = Server::direct().await;
    let (pg, other) = (server.connect().await, server.connect().await);
    let mut listener = pg.listen(CHANNEL);
    assert_eq!(next(&mut listener).await, "", "first, a reason to look");
    assert!(listener.is_live());
    // Another listener tries whether it is live, which is nobody else's business.
    let second = other.listen(CHANNEL);
    live(&second).await;
    notify(&other, "a task").await;
    assert_eq!(next(&mut listener).await, "a task");
}

#[tokio::test]
async fn a_listener_comes_back_after_its_connection_was_cut() {
    let server = Server::direct().await;
    let pg = server.connect().await;
    let mut listener = pg.listen(CHANNEL);
    assert_eq!(next(&mut listener).await, "");
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    assert_eq!(pg.query("cut", cut, &[]).await.unwrap().len(), 1, "none listens");
    until("cut", SOON, || async { (!listener.is_live()).then_some(()) }).await;
    assert_eq!(next(&mut listener).await, "", "something may have been missed");
    assert!(listener.is_live());
    notify(&pg, "after all").await;
    assert_eq!(next(&mut listener).await, "after all");
}

#[tokio::test]
async fn behind_a_pooler_a_listener_knows_that_it_hears_nothing() {
    let server = Server::pooled().await;
    let pg = server.connect().await;
    let mut listener = pg.listen(CHANNEL);
    let heard = tokio::time::timeout(Duration::from_secs(3), listener.next()).await;
    assert!(heard.is_err(), "heard {heard:?}");
    assert!(!listener.is_live());
}

#[tokio::test]
async fn a_listener_that_is_dropped_leaves_no_connection_behind() {
    let server = Server::direct().await;
    let pg = server.connect().await;
    let listener = pg.listen(CHANNEL);
    live(&listener).await;
    drop(listener);
    let listening = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
                     AND query LIKE 'LISTEN%'";
    until("gone", SOON, || async {
        pg.query("ask", listening, &[]).await.unwrap().is_empty().then_some(())
    })
    .await;
}

async fn columns(pg: &Pg) -> usize {
    let rows = pg.query_prepared("read", "SELECT * FROM shape", &[]).await.unwrap();
    rows[0].len()
}

/// How many statements like this one its own connection has prepared: itself, or none.
async fn prepared(pg: &Pg) -> i64 {
    let sql = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%count(*)%'";
    pg.query_prepared("look", sql, &[]).await.unwrap()[0].get(0)
}

#[tokio::test]
async fn statements_are_prepared_once_connections_are_known_to_be_sessions() {
    let server = Server::direct().await;
    let pg = server.connect().await;
    pg.query("make", "CREATE TABLE shape AS SELECT 1 AS a", &[]).await.unwrap();
    assert_eq!(prepared(&pg).await, 0, "nothing is known yet");
    let listener = pg.listen(CHANNEL);
    live(&listener).await;
    assert_eq!(prepared(&pg).await, 1);
    assert_eq!(columns(&pg).await, 1);
    // The table changes, or somebody cleans up the session: asked anew, without a word.
    pg.query("change", "ALTER TABLE shape ADD COLUMN b INT", &[]).await.unwrap();
    assert_eq!((columns(&pg).await, columns(&pg).await), (2, 2));
    for _ in 0..4 {
        pg.query("clean up", "DEALLOCATE ALL", &[]).await.unwrap();
    }
    assert_eq!((columns(&pg).await, columns(&pg).await), (2, 2));
}

#[tokio::test]
async fn nothing_is_prepared_behind_a_pooler() {
    let server = Server::pooled().await;
    let pg = server.connect().await;
    let listener = pg.listen(CHANNEL);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!listener.is_live());
    assert_eq!(prepared(&pg).await, 0);
    assert!(!copied(&pg, &[1]).await.unwrap());
}

/// Copies into two tables, of which the second takes each number once.
async fn copied(pg: &Pg, numbers: &[i32]) -> lavra_db::Result<bool> {
    let part = |into| CopyIn {
        into,
        types: &[Type::INT4],
        rows: numbers.iter().map(|n| -> Vec<&(dyn ToSql + Sync)> { vec![n] }).collect(),
    };
    let then: [(&str, &[Param<'_>]); 1] = [("INSERT INTO many VALUES (-1)", &[])];
    pg.copy("copy", &[part("many (a)"), part("once (a)")], &then).await
}

#[tokio::test]
async fn rows_are_copied_into_all_tables_or_none() {
    let server = Server::direct().await;
    let pg = server.connect().await;
    pg.query("make", "CREATE TABLE many (a INT)", &[]).await.unwrap();
    pg.query("make", "CREATE TABLE once (a INT PRIMARY KEY)", &[]).await.unwrap();
    assert!(!copied(&pg, &[1]).await.unwrap(), "nothing is known yet");
    let listener = pg.listen(CHANNEL);
    live(&listener).await;
    assert!(copied(&pg, &[1, 2]).await.unwrap());
    copied(&pg, &[3, 2]).await.unwrap_err();
    assert!(copied(&pg, &[3]).await.unwrap(), "the connection can be used again");
    let sql = "SELECT (SELECT array_agg(a ORDER BY a) FROM many),
                      (SELECT array_agg(a ORDER BY a) FROM once)";
    let rows = pg.query("read", sql, &[]).await.unwrap();
    let (many, once): (Vec<i32>, Vec<i32>) = (rows[0].get(0), rows[0].get(1));
    assert_eq!((many, once), (vec![-1, -1, 1, 2, 3], vec![1, 2, 3]));
}
