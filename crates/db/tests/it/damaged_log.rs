//! A log that cannot be replayed is set aside, loudly, and what can be saved of it is.

use std::path::PathBuf;

use lavra_db::duckdb::{Connection, params};
use lavra_db::{DuckOptions, Schema};

use crate::support::child::{self, role, tell};
use crate::support::place::{File, open};

const FOLDED: i64 = 10;
const IN_THE_LOG: i64 = 20;

async fn store(duck: &lavra_db::Duck, n: i64) {
    let body = format!("{n:01000}");
    let insert =
        move |tx: &Connection| tx.execute("INSERT INTO numbers VALUES ($1, $2)", params![n, body]);
    duck.write("store a number", insert).await.unwrap();
}

#[tokio::test]
async fn child() {
    let Some((_, path)) = role() else { return };
    let duck = open(&path);
    let make = "CREATE TABLE numbers (n BIGINT PRIMARY KEY, body TEXT)";
    duck.write("make the table", move |tx| tx.execute_batch(make)).await.unwrap();
    for n in 0..FOLDED {
        store(&duck, n).await;
    }
    drop(duck);
    let duck = open(&path);
    for n in FOLDED..FOLDED + IN_THE_LOG {
        store(&duck, n).await;
    }
    tell(duck.next_sequence());
    std::thread::park();
}

struct Killed {
    file: File,
    sequence: i64,
}

/// Ten numbers in the file, twenty in its log.
fn killed() -> Killed {
    let file = File::new();
    let mut running = child::start(child::command(module_path!(), "write", &file.path()));
    let sequence = running.hear().unwrap().parse().unwrap();
    running.kill();
    Killed { file, sequence }
}

impl Killed {
    fn log(&self) -> PathBuf {
        self.file.directory().join("lavra.duckdb.wal")
    }

    fn damage(&self, how: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = std::fs::read(self.log()).unwrap();
        how(&mut bytes);
        std::fs::write(self.log(), &bytes).unwrap();
        bytes
    }

    /// Opens it, and once more; returns how many numbers are there and what was set aside.
    async fn opened(&self) -> (i64, Option<PathBuf>) {
        let duck = self.file.open();
        let aside = duck.set_aside();
        assert!(duck.next_sequence() > self.sequence, "the sequence went back");
        let count = count(&duck).await;
        store(&duck, 1000).await;
        drop(duck);
        let again = self.file.open();
        assert_eq!(again.set_aside(), None, "set aside twice");
        assert_eq!(self::count(&again).await, count + 1);
        (count, aside)
    }
}

/// How many numbers there are; they are the first ones, without a gap.
async fn count(duck: &lavra_db::Duck) -> i64 {
    let count = |c: &Connection| {
        let sql = "SELECT count(*), max(n) FROM numbers WHERE n < 1000";
        c.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
    };
    let sql = "SELECT count(*) FROM numbers";
    let all = move |c: &Connection| c.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (count, greatest) = duck.read("count the numbers", count).await.unwrap();
    assert_eq!(count, greatest + 1, "there is a gap");
    duck.read("count them all", all).await.unwrap()
}

#[tokio::test]
async fn what_stands_before_the_damage_is_saved() {
    let killed = killed();
    let damaged = killed.damage(|log| {
        let position = log.len() * 3 / 4;
        log[position] ^= 0xFF;
    });
    let (count, aside) = killed.opened().await;
    assert!((FOLDED + 14..FOLDED + 16).contains(&count), "{count} numbers");
    let aside = aside.expect("nothing was set aside");
    assert_eq!(std::fs::read(aside).unwrap(), damaged, "the copy is not the damaged log");
}

#[tokio::test]
async fn zeros_at_the_end_after_a_power_cut_cost_only_the_end() {
    let killed = killed();
    killed.damage(|log| {
        let length = log.len();
        log[length - 300..].fill(0);
    });
    let (count, aside) = killed.opened().await;
    assert_eq!(count, FOLDED + IN_THE_LOG - 1);
    assert!(aside.is_some());
}

#[tokio::test]
async fn a_log_that_is_no_log_is_set_aside_and_the_file_opens_without_it() {
    let killed = killed();
    // The type of the first entry.
    let damaged = killed.damage(|log| log[2] ^= 0xFF);
    let (count, aside) = killed.opened().await;
    assert_eq!(count, FOLDED);
    assert_eq!(std::fs::read(aside.unwrap()).unwrap(), damaged);
}

#[tokio::test]
async fn a_torn_end_is_no_damage() {
    let killed = killed();
    killed.damage(|log| log.truncate(log.len() - 300));
    let (count, aside) = killed.opened().await;
    assert_eq!(count, FOLDED + IN_THE_LOG - 1);
    assert_eq!(aside, None, "a torn end was set aside");
}

#[tokio::test]
async fn a_log_is_not_blamed_for_a_machine_without_memory() {
    let killed = killed();
    let options = DuckOptions { memory_mb: 0, ..Default::default() };
    let opened = lavra_db::Duck::open(&killed.file.path(), Schema::default(), options);
    let error = opened.expect_err("no memory was enough");
    assert!(error.to_string().contains("Out of Memory"), "{error}");
    let duck = killed.file.open();
    assert_eq!(duck.set_aside(), None);
    assert_eq!(count(&duck).await, FOLDED + IN_THE_LOG);
}
