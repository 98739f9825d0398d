//! Whatever is done to both, the store on DuckDB answers as the one in memory and has the same
//! rows. Tokens differ, and are matched by when they were given out; so do the ids of log entries.

mod answers;
mod people;
mod questions;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lavra_db::{Database, Schema, Target, migrate};
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::machine::worker::View;
use lavra_fleet::memory::Memory;
use lavra_fleet::model::{
    EventKind, Mission, MissionId, Mode, ProxyId, Worker, WorkerId, WriterId,
};
use lavra_fleet::settings::Settings;
use lavra_fleet::store::{Control, Filter, Store, Thing};
use lavra_fleet::{DuckDb, MIGRATIONS};
use lavra_tasks::model::{ProcessId, Token};
use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

const STALE: Duration = Duration::from_secs(10);
const LEASE: u8 = 15;
const SET_RIGHT: u8 = 36;
const SUPERVISE_ALL: u8 = 31;
/// So many workers, proxies and writers at most.
const WORKERS: u64 = 8;
/// Ahead of this machine's clock, which a file would follow otherwise.
const BEGINNING: &str = "2101-01-01T00:00:00Z";

struct Both {
    memory: Memory,
    duck: DuckDb,
    now: Timestamp,
    /// Those of DuckDB, and what they are in memory.
    tokens: BTreeMap<Token, Token>,
    processes: [ProcessId; 2],
    workers: Vec<(WorkerId, Token, Token)>,
    missions: Vec<(MissionId, Token, Token)>,
    settings: Settings,
    number: u64,
    directory: TempDir,
}

/// One number after another out of one.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's multiplier; the upper half is the better one.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.roll(of.len() as u64) as usize) }
    }
}

async fn file_in(directory: &TempDir) -> DuckDb {
    let target = Target::File(directory.path().join("lavra.duckdb"));
    let database = Database::open(&target, Schema::default(), STALE).await.unwrap();
    let mut migrations = lavra_tasks::MIGRATIONS.to_vec();
    migrations.extend(MIGRATIONS.iter().cloned());
    migrate(&database, &migrations).await.unwrap();
    let Database::Duck(duck) = database else { panic!("no file") };
    DuckDb::new(duck)
}

impl Both {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let now = BEGINNING.parse().unwrap();
        let both = Self {
            memory: Memory::new(now),
            duck: file_in(&directory).await,
            now,
            tokens: BTreeMap::new(),
            processes: [ProcessId(Uuid::from_u128(1)), ProcessId(Uuid::from_u128(2))],
            workers: Vec::new(),
            missions: Vec::new(),
            settings: Settings::default(),
            number: 0,
            directory,
        };
        both.duck.clock().set(now);
        both
    }

    /// The file is closed and opened again.
    async fn reopened(self) -> Self {
        let Self { duck, directory, .. } = self;
        drop(duck);
        let duck = file_in(&directory).await;
        duck.clock().set(self.now);
        Self { duck, directory, ..self }
    }

    fn advance(&mut self, by: SignedDuration) {
        self.now += by;
        self.memory.clock().set(self.now);
        self.duck.clock().set(self.now);
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// What `verb` answers on both, which is the same.
    async fn same<'a, T, F>(&'a self, verb: impl Fn(&'a dyn Store) -> F) -> T
    where
        T: PartialEq + std::fmt::Debug,
        F: Future<Output = lavra_fleet::Result<T>>,
    {
        let in_memory = verb(&self.memory).await.unwrap();
        let on_duckdb = verb(&self.duck).await.unwrap();
        assert_eq!(on_duckdb, in_memory);
        in_memory
    }

    fn token(&self, token: Option<Token>) -> Option<Token> {
        token.map(|token| self.tokens[&token])
    }

    fn mission(&self, mission: Mission) -> Mission {
        Mission { token: self.token(mission.token), ..mission }
    }

    fn worker(&self, worker: Worker) -> Worker {
        Worker { token: self.token(worker.token), ..worker }
    }

    fn view(&self, view: View) -> View {
        View {
            worker: self.worker(view.worker),
            mission: view.mission.map(|mission| self.mission(mission)),
            ..view
        }
    }

    async fn turn(&mut self, verb: u8, dice: &mut Dice) {
        self.advance(SignedDuration::from_micros(1 + dice.roll(3_000_000) as i64));
        let process = self.processes[dice.roll(2) as usize];
        match verb {
            0..3 => self.add_missions(dice).await,
            3..7 => self.wish(Wish::Queue, dice).await,
            7 => self.wish(Wish::Cancel, dice).await,
            8 => self.wish(Wish::Retry { from_scrape: dice.roll(2) == 0 }, dice).await,
            9..13 => self.add_thing(dice).await,
            13 => self.change_thing(dice).await,
            14 => self.order(dice).await,
            SET_RIGHT => self.set_right().await,
            LEASE..20 => self.lease(process).await,
            20 => {
                let workers: Vec<WorkerId> =
                    self.workers.iter().map(|(id, ..)| id.clone()).take(2).collect();
                self.same(|store| store.release(process, workers.clone())).await;
            }
            21 => self.same(|store| store.leave(process)).await,
            22 => {
                let seconds = [20, 200, 700, 7000][dice.roll(4) as usize];
                self.advance(SignedDuration::from_secs(seconds));
            }
            23..31 => self.store(dice).await,
            SUPERVISE_ALL..36 => self.supervise_all(dice).await,
            _ => self.supervise(dice).await,
        }
        self.compare().await;
    }

    /// Enough of everything for something to happen.
    async fn begin(&mut self) {
        let control = Control { mode: Mode::Run, task_id: None };
        self.same(|store| store.set_control(control, None)).await;
        let mut dice = Dice(1);
        for _ in 0..60 {
            self.add_thing(&mut dice).await;
        }
        for _ in 0..6 {
            self.add_missions(&mut dice).await;
        }
        self.same(|store| async move { store.wish(&Filter::default(), Wish::Queue, "me").await })
            .await;
        self.lease(self.processes[0]).await;
        self.compare().await;
    }
}

fn worker_id(number: u64) -> WorkerId {
    WorkerId(format!("wrk_{number}"))
}

fn proxy_id(number: u64) -> ProxyId {
    ProxyId(format!("prx_{number}"))
}

fn writer_id(number: u64) -> WriterId {
    WriterId(format!("wrt_{number}"))
}

fn writer(number: u64) -> Thing {
    Thing::Writer(writer_id(number))
}

/// Does all of it, and returns what happened.
fn run(verbs: &[(u8, u64)]) -> BTreeSet<EventKind> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut both = Both::new().await;
        both.begin().await;
        for (verb, seed) in verbs {
            both.turn(*verb, &mut Dice(*seed)).await;
        }
        let both = both.reopened().await;
        both.compare().await;
        both.ask(&mut Dice(7)).await;
        both.memory.tables().logs.iter().map(|entry| entry.event).collect()
    })
}

#[test]
fn nearly_all_that_can_happen_happens_to_both() {
    let mut dice = Dice(7);
    // Mostly work: what people do undoes much of it.
    let mut verb = || match dice.roll(8) {
        0..4 => SUPERVISE_ALL,
        4 => LEASE,
        5 => SET_RIGHT,
        _ => dice.roll(60) as u8,
    };
    let verbs: Vec<u8> = (0..300).map(|_| verb()).collect();
    let verbs: Vec<(u8, u64)> = verbs.into_iter().zip(1..).collect();
    let happened = run(&verbs);
    let missing: Vec<_> = EventKind::ALL.iter().filter(|event| !happened.contains(event)).collect();
    assert!(missing.len() <= 4, "never happened: {missing:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_store_on_duckdb_answers_as_the_one_in_memory(
        verbs in prop::collection::vec((0_u8..60, any::<u64>()), 80..160)
    ) {
        run(&verbs);
    }
}
