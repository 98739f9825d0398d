//! The same instant everywhere: a process that lives in another time zone stores what a process
//! in UTC reads.

use jiff::Timestamp;
use lavra_db::duckdb::{Connection, params};
use lavra_db::{micros, timestamp};

use crate::support::child::{self, role, tell};
use crate::support::place::{File, open};

/// Within the hour that São Paulo skipped when it last put its clocks forward.
const FIXED: &str = "2018-11-04T00:30:00.123456Z";

#[tokio::test]
async fn child() {
    let Some((role, path)) = role() else { return };
    let duck = open(&path);
    if role == "write" {
        let (fixed, now) = (FIXED.parse().unwrap(), duck.clock().now());
        let write = move |tx: &Connection| {
            tx.execute_batch("CREATE TABLE times (fixed TIMESTAMPTZ, noted TIMESTAMPTZ)")?;
            tx.execute(
                "INSERT INTO times VALUES (make_timestamp($1), make_timestamp($2))",
                params![micros(fixed), micros(now)],
            )
        };
        duck.write("store times", write).await.unwrap();
        // `make_timestamp` and a parameter compared, as the stores do.
        let sql = "SELECT count(*) FROM times WHERE noted <= make_timestamp($1) AND
                   epoch_us(noted) >= $1";
        let same =
            move |c: &Connection| c.query_row(sql, [micros(now)], |row| row.get::<_, i64>(0));
        assert_eq!(duck.read("compare times", same).await.unwrap(), 1);
        let difference = Timestamp::now().duration_since(now).abs();
        assert!(difference.as_secs() < 5, "the clock is off by {difference:?}");
        tell(timestamp(micros(now)));
    }
    let read = |c: &Connection| {
        let sql = "SELECT epoch_us(fixed), epoch_us(noted) FROM times";
        c.query_row(sql, [], |row| Ok((timestamp(row.get(0)?), timestamp(row.get(1)?))))
    };
    let (fixed, noted) = duck.read("read times", read).await.unwrap();
    tell(fixed);
    tell(noted);
}

fn in_zone(zone: &str, role: &str, file: &File) -> Vec<String> {
    let mut command = child::command(module_path!(), role, &file.path());
    command.env("TZ", zone);
    child::finish(command)
}

fn written_there_is_the_same_here(zone: &str) {
    let file = File::new();
    let there = in_zone(zone, "write", &file);
    let [noted, fixed_there, noted_there] = there.as_slice() else { panic!("{there:?}") };
    let fixed = FIXED.parse::<Timestamp>().unwrap().to_string();
    assert_eq!((fixed_there, noted_there), (&fixed, noted), "read back in {zone}");
    assert_eq!(in_zone("UTC", "read", &file), [fixed, noted.clone()], "read in UTC");
}

#[test]
fn written_in_sao_paulo_is_the_same_in_utc() {
    written_there_is_the_same_here("America/Sao_Paulo");
}

#[test]
fn written_in_tokyo_is_the_same_in_utc() {
    written_there_is_the_same_here("Asia/Tokyo");
}
