//! What the tests share: a store of their own on an engine, and a shorthand for tasks.

pub(crate) mod shorthand;
pub(crate) mod world;

pub(crate) use lavra_testkit::{on_each_engine, on_servers};
pub(crate) use world::World;

/// Runs `job` `count` times at once, and returns what each gave.
pub(crate) async fn at_once<T, F>(count: usize, job: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let started: Vec<_> = (0..count).map(|place| tokio::spawn(job(place))).collect();
    let mut ended = Vec::with_capacity(count);
    for task in started {
        ended.push(task.await.unwrap());
    }
    ended
}
