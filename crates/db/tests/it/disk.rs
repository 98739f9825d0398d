//! A disk that is full, on a small file system of its own: writes are refused, nothing
//! acknowledged is lost, nothing is stored twice, and it goes on when there is room again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use lavra_db::duckdb::{Connection, params};
use lavra_db::{Duck, DuckOptions, Error, Schema};
use uuid::Uuid;

use crate::support::child::{self, role, tell};
use crate::support::random;

const MEGABYTE: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Some((role, disk)) = role() else { return };
    match role.as_str() {
        "low" => refused_before_it_is_full(&disk).await,
        "full" => goes_on_after_it_was_full(&disk).await,
        "no room to replay" => the_log_waits_for_room(&disk).await,
        other => panic!("no such role: {other}"),
    }
    tell("done");
}

/// Runs this module's child with a disk of 24 MB, which only it sees.
fn on_a_small_disk(role: &str) {
    let disk = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=24m tmpfs \"$LAVRA_TEST_FILE\" && exec \"$@\"";
    let is_root = std::fs::metadata("/proc/self")
        .is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    let mut command = Command::new("unshare");
    let child = child::command(module_path!(), role, disk.path());
    command
        .arg(if is_root { "--mount" } else { "--map-root-user" })
        .args(if is_root { None } else { Some("--mount") })
        .args(["sh", "-c", script, "sh"])
        .arg(child.get_program())
        .args(child.get_args())
        .envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert_eq!(child::finish(command), ["done"]);
}

#[test]
fn a_nearly_full_disk_is_refused_until_there_is_room() {
    on_a_small_disk("low");
}

#[test]
fn a_full_disk_loses_nothing_and_stores_nothing_twice() {
    on_a_small_disk("full");
}

#[test]
fn a_log_that_finds_no_room_is_not_set_aside() {
    on_a_small_disk("no room to replay");
}

/// A file that takes up room.
struct Filler(PathBuf);

impl Filler {
    fn new(disk: &Path, bytes: usize) -> Self {
        let path = disk.join("filler");
        std::fs::write(&path, vec![7; bytes]).unwrap();
        Self(path)
    }

    /// All but `left` bytes.
    fn all_but(disk: &Path, left: usize) -> Self {
        let stat = rustix::fs::statvfs(disk).unwrap();
        let free = (stat.f_bavail * stat.f_frsize) as usize;
        Self::new(disk, free.saturating_sub(left))
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

fn open(path: &Path, min_free_mb: u64) -> Duck {
    let options = DuckOptions { checkpoint_mb: 1, min_free_mb, ..Default::default() };
    Duck::open(path, Schema::default(), options).unwrap()
}

async fn store(duck: &Duck, n: i64) -> lavra_db::Result<i64> {
    // Cannot be compressed to nothing.
    let body = (0..100).map(|_| Uuid::new_v4().simple().to_string()).collect::<String>();
    let insert = move |tx: &Connection| {
        tx.prepare_cached("UPDATE counters SET n = n + 1")?.execute([])?;
        tx.prepare_cached("INSERT INTO numbers VALUES ($1, $2)")?.execute(params![n, body])?;
        Ok(n)
    };
    duck.write("store a number", insert).await
}

async fn make(duck: &Duck) {
    let make = "CREATE TABLE numbers (n BIGINT, body TEXT); CREATE TABLE counters (n BIGINT);
                INSERT INTO counters VALUES (0)";
    duck.write("make the tables", move |tx| tx.execute_batch(make)).await.unwrap();
}

async fn refused_before_it_is_full(disk: &Path) {
    let duck = open(&disk.join("lavra.duckdb"), 8);
    make(&duck).await;
    let filler = Filler::all_but(disk, 4 * MEGABYTE);
    let error = store(&duck, 1).await.unwrap_err();
    assert!(matches!(error, Error::DiskFull { free_mb: 3..=4, .. }), "{error:?}");
    assert!(error.is_transient());
    let read =
        |c: &Connection| c.query_row("SELECT n FROM counters", [], |row| row.get::<_, i64>(0));
    assert_eq!(duck.read("read on a full disk", read).await.unwrap(), 0);
    drop(filler);
    assert_eq!(store(&duck, 1).await.unwrap(), 1);
}

/// Stores numbers from several tasks until one of each is refused; returns what was acknowledged.
async fn until_refused(duck: &Duck, first: i64) -> Vec<i64> {
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let duck = duck.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for n in (first + task..).step_by(8) {
                    match store(&duck, n).await {
                        Ok(n) => acknowledged.push(n),
                        Err(error) => {
                            assert!(error.is_transient(), "not transient: {error:?}");
                            break;
                        }
                    }
                }
                acknowledged
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    acknowledged
}

/// What is stored is what was acknowledged: each number once, and each transaction whole.
async fn assert_exactly(duck: &Duck, acknowledged: &[i64], when: &str) {
    let read = |c: &Connection| {
        let mut statement = c.prepare("SELECT n, count(*) FROM numbers GROUP BY n")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let stored = rows.collect::<lavra_db::duckdb::Result<BTreeMap<i64, i64>>>()?;
        let counter = c.query_row("SELECT n FROM counters", [], |row| row.get::<_, i64>(0))?;
        Ok((stored, counter))
    };
    let (stored, counter) = duck.read("read the numbers", read).await.unwrap();
    let expected: BTreeMap<i64, i64> = acknowledged.iter().map(|n| (*n, 1)).collect();
    let lost: Vec<_> = expected.keys().filter(|n| !stored.contains_key(n)).collect();
    let more: Vec<_> = stored.iter().filter(|(n, times)| expected.get(n) != Some(times)).collect();
    assert!(lost.is_empty() && more.is_empty(), "{when}: lost {lost:?}, too many {more:?}");
    assert_eq!(counter, acknowledged.len() as i64, "{when}: the counter");
}

/// The file as a crash at this moment would leave it, opened.
async fn assert_exactly_after_a_crash(path: &Path, acknowledged: &[i64]) {
    let elsewhere = tempfile::tempdir().unwrap();
    for suffix in ["", ".wal", ".wal.checkpoint"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        if Path::new(&name).exists() {
            let file = Path::new(&name).file_name().unwrap();
            std::fs::copy(&name, elsewhere.path().join(file)).unwrap();
        }
    }
    let duck = open(&elsewhere.path().join("lavra.duckdb"), 0);
    assert_eq!(duck.set_aside(), None);
    assert_exactly(&duck, acknowledged, "after a crash").await;
}

async fn goes_on_after_it_was_full(disk: &Path) {
    for round in 0..4 {
        let directory = disk.join(format!("{round}"));
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("lavra.duckdb");
        let duck = open(&path, 0);
        make(&duck).await;
        // Sometimes the log meets the end of the disk, sometimes the folding of it does.
        let filler = Filler::all_but(disk, MEGABYTE / 2 + random(4 << 20) as usize);
        let mut acknowledged = until_refused(&duck, 0).await;
        assert_exactly_after_a_crash(&path, &acknowledged).await;
        acknowledged.extend(until_refused(&duck, 100_000).await);
        drop(filler);
        for n in 200_000..200_020 {
            acknowledged.push(store(&duck, n).await.unwrap());
        }
        assert_exactly(&duck, &acknowledged, "with room again").await;
        assert_exactly_after_a_crash(&path, &acknowledged).await;
        drop(duck);
        assert_exactly(&open(&path, 0), &acknowledged, "opened again").await;
        std::fs::remove_dir_all(directory).unwrap();
    }
}

async fn the_log_waits_for_room(disk: &Path) {
    let path = disk.join("lavra.duckdb");
    let options = DuckOptions { checkpoint_mb: 64, min_free_mb: 0, ..Default::default() };
    let duck = Duck::open(&path, Schema::default(), options).unwrap();
    make(&duck).await;
    let mut acknowledged = Vec::new();
    for n in 0..1000 {
        acknowledged.push(store(&duck, n).await.unwrap());
    }
    let filler = Filler::all_but(disk, 0);
    drop(duck);
    match Duck::open(&path, Schema::default(), options) {
        Ok(duck) => assert_eq!(duck.set_aside(), None),
        Err(error) => assert!(error.is_transient(), "{error:?}"),
    }
    drop(filler);
    let duck = open(&path, 0);
    assert_eq!(duck.set_aside(), None);
    assert_exactly(&duck, &acknowledged, "with room again").await;
}
