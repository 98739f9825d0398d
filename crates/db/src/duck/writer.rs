//! The writer thread: small group commits that acknowledge exactly what was stored.
//!
//! Jobs that wait are run in one transaction. COMMIT of an aborted transaction answers Ok and has
//! stored nothing, and a job may have swallowed the error that aborted it; so each group is
//! probed with a statement before COMMIT. If a job fails or the probe does, the group is rolled
//! back and each job is run again, alone, with the same probe. Only then is anyone answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use duckdb::Connection;
use tokio::sync::{mpsc, oneshot};

use super::instance::Shared;
use crate::{Error, Result};

const GROUP: usize = 32;
const WAITING: usize = 1024;

/// A job with its answer inside, so that the queue can hold jobs of any type.
trait Job: Send {
    fn run(&mut self, tx: &Connection) -> duckdb::Result<()>;
    fn operation(&self) -> &'static str;
    fn answer(self: Box<Self>, outcome: Result<()>);
}

struct Pending<T, F> {
    operation: &'static str,
    job: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for Pending<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> duckdb::Result<T> + Send,
{
    fn run(&mut self, tx: &Connection) -> duckdb::Result<()> {
        self.value = None;
        let ran = catch_unwind(AssertUnwindSafe(|| (self.job)(tx)));
        self.value = Some(ran.unwrap_or_else(|_| {
            Err(duckdb::Error::ToSqlConversionFailure("a database job panicked".into()))
        })?);
        Ok(())
    }

    fn operation(&self) -> &'static str {
        self.operation
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Self { value, reply, .. } = *self;
        let missing = || Error::Thread("a committed job has no value".into());
        let _caller_gone = reply.send(outcome.and_then(|()| value.ok_or_else(missing)));
    }
}

type Reshape = Box<dyn FnOnce(&Connection) -> duckdb::Result<()> + Send>;

enum Order {
    Write(Box<dyn Job>),
    Reshape(Reshape, oneshot::Sender<Result<()>>),
}

#[derive(Clone)]
pub(super) struct Handle(mpsc::Sender<Order>);

impl Handle {
    pub(super) async fn submit<T, F>(&self, operation: &'static str, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> duckdb::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let pending = Box::new(Pending { operation, job, value: None, reply });
        self.0.send(Order::Write(pending)).await.map_err(Error::thread)?;
        answer.await.map_err(Error::thread)?
    }

    pub(super) async fn reshape<F>(&self, job: F) -> Result<()>
    where
        F: FnOnce(&Connection) -> duckdb::Result<()> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.0.send(Order::Reshape(Box::new(job), reply)).await.map_err(Error::thread)?;
        answer.await.map_err(Error::thread)?
    }
}

pub(super) fn start(shared: Arc<Shared>) -> Result<Handle> {
    let (sender, orders) = mpsc::channel(WAITING);
    std::thread::Builder::new()
        .name("duckdb-writer".into())
        .spawn(move || serve(&shared, orders))
        .map_err(Error::thread)?;
    Ok(Handle(sender))
}

fn serve(shared: &Shared, mut orders: mpsc::Receiver<Order>) {
    while let Some(first) = orders.blocking_recv() {
        let mut group = Vec::new();
        let mut reshape = None;
        let mut next = Some(first);
        while let Some(order) = next.take() {
            match order {
                Order::Write(job) => group.push(job),
                Order::Reshape(job, reply) => reshape = Some((job, reply)),
            }
            if group.len() < GROUP && reshape.is_none() {
                next = orders.try_recv().ok();
            }
        }
        if !group.is_empty() {
            commit(shared, group);
        }
        if let Some((job, reply)) = reshape {
            let _caller_gone = reply.send(run_reshape(shared, job));
        }
    }
}

fn commit(shared: &Shared, mut group: Vec<Box<dyn Job>>) {
    if let Err(full) = shared.check_free_space() {
        refuse(group, &full);
        return;
    }
    match shared.with_writer(|connection| transaction(connection, &mut group)) {
        Ok(Ok(())) => group.into_iter().for_each(|job| job.answer(Ok(()))),
        Ok(Err(error)) if group.len() > 1 => {
            shared.reopen_if_fatal(&error);
            group.into_iter().for_each(|job| commit(shared, vec![job]));
        }
        Ok(Err(source)) => {
            shared.reopen_if_fatal(&source);
            if let Some(job) = group.pop() {
                let operation = job.operation();
                job.answer(Err(Error::Duck { operation, source }));
            }
        }
        Err(error) => refuse(group, &error),
    }
}

/// All the jobs in one transaction; any error, and a failed probe, roll all of it back.
fn transaction(connection: &Connection, jobs: &mut [Box<dyn Job>]) -> duckdb::Result<()> {
    connection.execute_batch("BEGIN")?;
    let outcome = jobs
        .iter_mut()
        .try_for_each(|job| job.run(connection))
        .and_then(|()| connection.prepare_cached("SELECT 1")?.query_row([], |_| Ok(())))
        .and_then(|()| connection.execute_batch("COMMIT"));
    if outcome.is_err() {
        // After a FATAL error this fails as well; the instance is dropped then.
        let _already_over = connection.execute_batch("ROLLBACK");
    }
    outcome
}

fn run_reshape(shared: &Shared, job: Reshape) -> Result<()> {
    let operation = "change the schema";
    let ran = shared.with_writer(|connection| {
        connection.execute_batch("CHECKPOINT")?;
        connection.execute_batch("BEGIN")?;
        let outcome = job(connection)
            .and_then(|()| connection.execute_batch("SELECT 1"))
            .and_then(|()| connection.execute_batch("COMMIT"));
        if outcome.is_err() {
            let _already_over = connection.execute_batch("ROLLBACK");
        }
        outcome?;
        connection.execute_batch("CHECKPOINT")
    })?;
    ran.map_err(|source| {
        shared.reopen_if_fatal(&source);
        Error::Duck { operation, source }
    })
}

/// Answers every job of a group with the same refusal; an error cannot be cloned, its text can.
fn refuse(group: Vec<Box<dyn Job>>, error: &Error) {
    for job in group {
        job.answer(Err(match error {
            Error::DiskFull { path, free_mb } => {
                Error::DiskFull { path: path.clone(), free_mb: *free_mb }
            }
            other => Error::Thread(other.to_string()),
        }));
    }
}
