//! Several processes on one server.

use crate::support::{Receiver, Running, World, on_servers};

on_servers!(two_processes_tell_a_receiver_that_answers_each_event_once);

async fn two_processes_tell_a_receiver_that_answers_each_event_once(world: World) {
    let receiver = Receiver::start(&[500, 204, 429, 204, 204, 503]).await;
    world.webhook("ops", &receiver.url, &[]).await;
    let other = world.another().await;
    let running = [Running::start(&world), Running::start(&other)];
    for round in 0..10 {
        let happens = if round % 2 == 0 { &world } else { &other };
        happens.mission_fails().await;
        happens.task_fails("act", "it broke").await;
        happens.run_ends(round % 3).await;
    }
    // An extraction that is short is a dead letter as well.
    let shorts = (0..10).filter(|round| round % 3 > 0).count();
    world.delivered(30 + shorts).await;
    for one in running {
        one.stop().await;
    }
    let taken = receiver.taken();
    let mut events = taken.clone();
    events.dedup();
    assert_eq!(taken, events, "an event was taken twice");
    assert_eq!(taken.len(), 30 + shorts);
    assert!(receiver.requests().iter().all(|request| request.is_signed));
}
