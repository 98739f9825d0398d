//! The loops of an orchestrator, in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use lavra_fleet::api::{Answer, Call, Lost, Transport};
use lavra_fleet::keys::NoKeys;
use lavra_fleet::model::Mode;
use lavra_fleet::settings::Timing;
use lavra_fleet::store::Control;
use lavra_fleet::{Bell, Orchestrator};
use lavra_tasks::model::TaskId;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::World;

/// Panics when it is called first; afterwards nobody answers.
#[derive(Debug, Default)]
struct PanicsOnce(AtomicUsize);

#[async_trait]
impl Transport for PanicsOnce {
    async fn send(&self, _: Call) -> Result<Answer, Lost> {
        let before = self.0.fetch_add(1, Ordering::SeqCst);
        assert!(before > 0, "the first call panics, as this test wants it");
        Err(Lost::Refused("connection refused".into()))
    }
}

fn orchestrator(world: &World, transport: Arc<dyn Transport>, timing: &Timing) -> Orchestrator {
    let (store, keys) = (Arc::clone(&world.store), Arc::new(NoKeys));
    Orchestrator::new(store, transport, keys, Bell::default(), *timing, world.process(), 1)
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_panics_is_started_again() {
    let world = World::in_memory();
    world.queue(1).await;
    world.add_worker("w").await;
    world.add_proxy("p").await;
    let run = Control { mode: Mode::Run, task_id: None };
    assert!(world.store.set_control(run, None).await.unwrap());
    let transport = Arc::new(PanicsOnce::default());
    let orchestrator = orchestrator(&world, transport.clone(), &Timing::default());
    let stop = CancellationToken::new();
    let enough = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stop.cancel();
    };
    let (supervised, ()) = tokio::join!(orchestrator.supervise(&stop), enough);
    supervised.unwrap();
    assert!(transport.0.load(Ordering::SeqCst) > 1, "the worker was asked again");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_run_leaves_the_one_that_began_since() {
    let world = World::in_memory();
    let orchestrator = orchestrator(&world, Arc::new(PanicsOnce::default()), &Timing::default());
    let [first, second] = [1, 2].map(|id| Some(TaskId(Uuid::from_u128(id))));
    let begun = Control { mode: Mode::Run, task_id: second };
    world.queue(1).await;
    let stop = CancellationToken::new();
    let other = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(world.store.set_control(begun, first).await.unwrap());
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(orchestrator.run(first, &stop, |_, _| {}), other);
    assert!(ended.unwrap().was_stopped);
    assert_eq!(world.store.control().await.unwrap(), begun);
}

#[tokio::test(start_paused = true)]
async fn a_patience_beyond_all_clocks_is_waited_with() {
    let world = World::in_memory();
    let timing = Timing { close_patience: Duration::MAX, ..Timing::default() };
    let orchestrator = orchestrator(&world, Arc::new(PanicsOnce::default()), &timing);
    let stop = CancellationToken::new();
    let ended = orchestrator.run(None, &stop, |_, _| {}).await.unwrap();
    assert_eq!(ended.unclosed, 0);
}
