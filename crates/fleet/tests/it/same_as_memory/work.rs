//! The turns of those who look after workers and see to it that missions are stored.

use lavra_fleet::machine::worker;
use lavra_fleet::machine::{Step, writer};
use lavra_fleet::model::{SessionId, WorkerId};
use lavra_fleet::store::{Assigned, Leases, Opened, Opening, Reads, Steps, Supervises};
use lavra_tasks::model::{ProcessId, Token};

use super::answers::writer_says;
use super::{Both, Dice, STALE};

impl Both {
    pub(super) async fn lease(&mut self, process: ProcessId) {
        let in_memory = self.memory.lease(process, STALE).await.unwrap();
        let on_duckdb = self.duck.lease(process, STALE).await.unwrap();
        assert_eq!(on_duckdb.surplus, in_memory.surplus);
        let ids = |leased: &lavra_fleet::store::Leased| {
            let workers = leased.workers.iter().map(|(id, _)| id.0.clone());
            workers.chain(leased.missions.iter().map(|(id, _)| id.0.clone())).collect::<Vec<_>>()
        };
        assert_eq!(ids(&on_duckdb), ids(&in_memory));
        for ((id, on_duckdb), (_, in_memory)) in on_duckdb.workers.iter().zip(&in_memory.workers) {
            let known = self.tokens.insert(*on_duckdb, *in_memory);
            assert!(known.is_none_or(|known| known == *in_memory));
            self.workers.push((id.clone(), *on_duckdb, *in_memory));
        }
        for ((id, on_duckdb), (_, in_memory)) in on_duckdb.missions.iter().zip(&in_memory.missions)
        {
            let known = self.tokens.insert(*on_duckdb, *in_memory);
            assert!(known.is_none_or(|known| known == *in_memory));
            self.missions.push((id.clone(), *on_duckdb, *in_memory));
        }
        // Old ones now and then, to be refused.
        let keep = |len: usize| len.saturating_sub(16);
        self.workers.drain(..keep(self.workers.len()));
        self.missions.drain(..keep(self.missions.len()));
    }

    async fn apply(&self, on_duckdb: Step, in_memory: Step, dice: &mut Dice) {
        let (mut duck, mut memory) = (vec![on_duckdb.clone()], vec![in_memory.clone()]);
        if dice.roll(8) == 0 {
            duck.push(on_duckdb);
            memory.push(in_memory);
        }
        let expected = self.memory.apply(memory).await.unwrap();
        assert_eq!(self.duck.apply(duck).await.unwrap(), expected);
    }

    /// One turn of whoever looks after a worker.
    pub(super) async fn supervise(&mut self, dice: &mut Dice) {
        let Some((id, on_duckdb, in_memory)) = dice.pick(&self.workers).cloned() else { return };
        let memory = self.memory.view(&id, in_memory).await.unwrap();
        let duck = self.duck.view(&id, on_duckdb).await.unwrap();
        let normal = duck.clone().map(|view| self.view(view));
        assert_eq!(normal, memory);
        let (Some(duck), Some(memory)) = (duck, memory) else { return };
        let session = SessionId(format!("ses_{:05}", self.next()));
        match (
            worker::todo(&duck, &self.settings, self.now),
            worker::todo(&memory, &self.settings, self.now),
        ) {
            (worker::Todo::Write(duck), worker::Todo::Write(memory)) => {
                self.apply(*duck, *memory, dice).await;
            }
            (worker::Todo::Ask(ask, _), worker::Todo::Ask(same, _)) => {
                assert_eq!(ask, same);
                let reply = self.worker_says(ask, dice);
                let step = |view| worker::after(view, ask, &reply, &self.settings, self.now);
                if let (Some(duck), Some(memory)) = (step(&duck), step(&memory)) {
                    self.apply(duck, memory, dice).await;
                }
            }
            (worker::Todo::Assign, worker::Todo::Assign) => {
                self.assign(&id, on_duckdb, in_memory).await;
            }
            (worker::Todo::Open, worker::Todo::Open) => self.open(&id, session, dice).await,
            _ => {}
        }
        if dice.roll(6) == 0 {
            let session = SessionId(format!("ses_{:05}", self.next()));
            self.open(&id, session, dice).await;
        }
    }

    /// Many turns at once: their steps are written together, old tokens among them.
    pub(super) async fn supervise_all(&mut self, dice: &mut Dice) {
        let (mut duck, mut memory) = (Vec::new(), Vec::new());
        for (id, on_duckdb, in_memory) in self.workers.clone() {
            let (Some(a), Some(b)) = (
                self.duck.view(&id, on_duckdb).await.unwrap(),
                self.memory.view(&id, in_memory).await.unwrap(),
            ) else {
                continue;
            };
            match (
                worker::todo(&a, &self.settings, self.now),
                worker::todo(&b, &self.settings, self.now),
            ) {
                (worker::Todo::Write(a), worker::Todo::Write(b)) => {
                    duck.push(*a);
                    memory.push(*b);
                }
                (worker::Todo::Ask(ask, _), worker::Todo::Ask(..)) => {
                    let reply = self.worker_says(ask, dice);
                    let step = |view| worker::after(view, ask, &reply, &self.settings, self.now);
                    duck.extend(step(&a));
                    memory.extend(step(&b));
                }
                (worker::Todo::Open, worker::Todo::Open) => {
                    let session = SessionId(format!("ses_{:05}", self.next()));
                    self.open(&id, session, dice).await;
                }
                (worker::Todo::Assign, worker::Todo::Assign) => {
                    self.assign(&id, on_duckdb, in_memory).await;
                }
                _ => {}
            }
        }
        let writers = self.memory.writers().await.unwrap();
        for (id, on_duckdb, in_memory) in self.missions.clone() {
            let (Some(a), Some(b)) = (
                self.duck.storing(&id, on_duckdb).await.unwrap(),
                self.memory.storing(&id, in_memory).await.unwrap(),
            ) else {
                continue;
            };
            let todo = |mission| writer::todo(mission, &writers, "w", &self.settings, self.now);
            match (todo(&a), todo(&b)) {
                (writer::Todo::Write(a), writer::Todo::Write(b)) => {
                    duck.push(*a);
                    memory.push(*b);
                }
                (writer::Todo::Ask(ask, ..), writer::Todo::Ask(..)) => {
                    let reply = writer_says(ask, dice);
                    let step =
                        |mission| writer::after(mission, ask, &reply, &self.settings, self.now);
                    duck.extend(step(&a));
                    memory.extend(step(&b));
                }
                _ => {}
            }
        }
        let expected = self.memory.apply(memory).await.unwrap();
        assert_eq!(self.duck.apply(duck).await.unwrap(), expected);
    }

    async fn assign(&self, id: &WorkerId, on_duckdb: Token, in_memory: Token) {
        let memory = self.memory.assign(id, in_memory).await.unwrap();
        let duck = match self.duck.assign(id, on_duckdb).await.unwrap() {
            Assigned::With(view) => Assigned::With(Box::new(self.view(*view))),
            other => other,
        };
        assert_eq!(duck, memory);
    }

    async fn open(&self, id: &WorkerId, session: SessionId, dice: &mut Dice) {
        let Some((_, duck, memory)) = self.workers.iter().rev().find(|(w, ..)| w == id) else {
            return;
        };
        let luck = dice.roll(1000);
        let opening = |token| Opening { worker: id.clone(), token, session: session.clone(), luck };
        let expected: Opened = self.memory.open(opening(*memory)).await.unwrap();
        assert_eq!(self.duck.open(opening(*duck)).await.unwrap(), expected);
    }

    /// One turn of whoever sees to it that a mission is stored.
    pub(super) async fn store(&mut self, dice: &mut Dice) {
        let Some((id, on_duckdb, in_memory)) = dice.pick(&self.missions).cloned() else { return };
        let memory = self.memory.storing(&id, in_memory).await.unwrap();
        let duck = self.duck.storing(&id, on_duckdb).await.unwrap();
        assert_eq!(duck.clone().map(|mission| self.mission(mission)), memory);
        let (Some(duck), Some(memory)) = (duck, memory) else { return };
        let writers = self.memory.writers().await.unwrap();
        let job_id = format!("write_{}", self.next());
        let todo = |mission| writer::todo(mission, &writers, &job_id, &self.settings, self.now);
        match (todo(&duck), todo(&memory)) {
            (writer::Todo::Write(duck), writer::Todo::Write(memory)) => {
                self.apply(*duck, *memory, dice).await;
            }
            (writer::Todo::Ask(ask, ..), writer::Todo::Ask(..)) => {
                let reply = writer_says(ask, dice);
                let step = |mission| writer::after(mission, ask, &reply, &self.settings, self.now);
                if let (Some(duck), Some(memory)) = (step(&duck), step(&memory)) {
                    self.apply(duck, memory, dice).await;
                }
            }
            _ => {}
        }
    }
}
