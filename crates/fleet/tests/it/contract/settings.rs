//! The one row of settings.

use lavra_fleet::model::Mode;
use lavra_fleet::settings::{Adjustable, ProxyFailures};
use lavra_fleet::store::Control;
use lavra_tasks::model::TaskId;

use crate::support::{World, on_each_store};

on_each_store!(
    settings_begin_with_the_defaults_and_keep_what_is_set,
    the_mode_is_kept_with_its_run,
    what_is_said_of_another_run_than_the_one_there_is_is_not_written,
);

async fn settings_begin_with_the_defaults_and_keep_what_is_set(world: World) {
    assert_eq!(world.store.settings().await.unwrap(), Adjustable::default());
    let other =
        Adjustable { session_limit: 9, max_retries: 0, proxy_failures: ProxyFailures::Consecutive };
    world.store.set_settings(other).await.unwrap();
    assert_eq!(world.store.settings().await.unwrap(), other);
    let off = Control { mode: Mode::Off, task_id: None };
    assert_eq!(world.store.control().await.unwrap(), off, "the one is not the other");
}

async fn the_mode_is_kept_with_its_run(world: World) {
    let mut seen = None;
    for mode in Mode::ALL {
        for task_id in [None, Some(TaskId(uuid::Uuid::new_v4()))] {
            let control = Control { mode: *mode, task_id };
            assert!(world.store.set_control(control, seen).await.unwrap());
            seen = task_id;
            assert_eq!(world.store.control().await.unwrap(), control);
        }
    }
    assert_eq!(world.store.settings().await.unwrap(), Adjustable::default());
}

async fn what_is_said_of_another_run_than_the_one_there_is_is_not_written(world: World) {
    let [first, second] = [1, 2].map(|id| Some(TaskId(uuid::Uuid::from_u128(id))));
    let runs = |task_id| Control { mode: Mode::Run, task_id };
    assert!(!world.store.set_control(runs(first), second).await.unwrap());
    assert!(world.store.set_control(runs(first), None).await.unwrap());
    assert!(!world.store.set_control(runs(second), None).await.unwrap());
    assert!(world.store.set_control(runs(second), first).await.unwrap());
    let end_of_the_first = Control { mode: Mode::Off, task_id: first };
    assert!(!world.store.set_control(end_of_the_first, first).await.unwrap());
    assert_eq!(world.store.control().await.unwrap(), runs(second));
}
