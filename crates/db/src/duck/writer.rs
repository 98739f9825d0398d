//! The writer thread: small group commits that acknowledge exactly what was stored.
//!
//! Jobs that wait are run in one transaction. COMMIT of an aborted transaction answers Ok and has
//! stored nothing, and a job may have swallowed the error that aborted it; so each group is
//! probed with a statement before COMMIT. If a job fails or the probe does, the group is rolled
//! back and each job is run again, alone, with the same probe. Only then is anyone answered.
//!
//! A COMMIT here only writes the log. Folding the log into the file comes after the answers: it
//! may fail (a full disk) without anything being lost, and must not make a job run twice.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

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
        let Self { value, reply, job, .. } = *self;
        // What it holds of the file is let go before its caller may close it.
        drop(job);
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
pub(super) struct Handle(Arc<Thread>);

/// The last handle waits until everything is written and the file is closed, so that it can be
/// opened again at once.
struct Thread {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _panicked = thread.join();
        }
    }
}

impl Handle {
    async fn order(&self, order: Order) -> Result<()> {
        match &self.0.orders {
            Some(orders) => orders.send(order).await.map_err(Error::thread),
            None => Err(Error::thread("the writer has ended")),
        }
    }

    pub(super) async fn submit<T, F>(&self, operation: &'static str, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> duckdb::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let pending = Box::new(Pending { operation, job, value: None, reply });
        self.order(Order::Write(pending)).await?;
        answer.await.map_err(Error::thread)?
    }

    pub(super) async fn reshape<F>(&self, job: F) -> Result<()>
    where
        F: FnOnce(&Connection) -> duckdb::Result<()> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Reshape(Box::new(job), reply)).await?;
        answer.await.map_err(Error::thread)?
    }
}

pub(super) fn start(shared: Arc<Shared>) -> Result<Handle> {
    let (sender, orders) = mpsc::channel(WAITING);
    let thread = std::thread::Builder::new()
        .name("duckdb-writer".into())
        .spawn(move || serve(&shared, orders))
        .map_err(Error::thread)?;
    Ok(Handle(Arc::new(Thread { orders: Some(sender), thread: Some(thread) })))
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
            shared.fold_a_long_log();
        }
        if let Some((job, reply)) = reshape {
            let _caller_gone = reply.send(run_reshape(shared, job));
        }
    }
}

fn commit(shared: &Shared, mut group: Vec<Box<dyn Job>>) {
    let operation = group.first().map_or("write", |job| job.operation());
    let stored = shared.check_free_space().and_then(|()| {
        shared.with_room(operation, |connection| transaction(connection, &mut group))
    });
    match stored {
        Ok(()) => group.into_iter().for_each(|job| job.answer(Ok(()))),
        Err(_) if group.len() > 1 => {
            for job in group {
                commit(shared, vec![job]);
            }
        }
        Err(error) => {
            if let Some(job) = group.pop() {
                job.answer(Err(error));
            }
        }
    }
}

/// All the jobs in one transaction; any error, and a failed probe, roll all of it back.
fn transaction(connection: &Connection, jobs: &mut [Box<dyn Job>]) -> duckdb::Result<()> {
    let outcome = connection
        .execute_batch("BEGIN")
        .and_then(|()| jobs.iter_mut().try_for_each(|job| job.run(connection)))
        .and_then(|()| connection.prepare_cached("SELECT 1")?.query_row([], |_| Ok(())))
        .and_then(|()| connection.execute_batch("COMMIT"));
    if outcome.is_err() {
        // After a FATAL error this fails as well; the instance is dropped then.
        let _already_over = connection.execute_batch("ROLLBACK");
    }
    outcome
}

fn run_reshape(shared: &Shared, job: Reshape) -> Result<()> {
    shared.check_free_space()?;
    // Whoever reads is in the way of a CHECKPOINT.
    let _nobody_reads = shared.nobody_reads();
    let is_folded = shared.log_length() == 0;
    shared.with_writer("change the schema", |connection| {
        if !is_folded {
            connection.execute_batch("CHECKPOINT")?;
        }
        let outcome = connection
            .execute_batch("BEGIN")
            .and_then(|()| job(connection))
            .and_then(|()| connection.execute_batch("SELECT 1"))
            .and_then(|()| connection.execute_batch("COMMIT"));
        if outcome.is_err() {
            let _already_over = connection.execute_batch("ROLLBACK");
        }
        outcome?;
        connection.execute_batch("CHECKPOINT")
    })
}
