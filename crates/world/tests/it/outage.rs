//! Times in which nothing answers.

use std::time::Duration;

use lavra_world::{Ending, Outage, Request};

use crate::support::{contratos, get, world_with};

#[tokio::test(start_paused = true)]
async fn nothing_answers_from_then_until_then() {
    let outage = Outage { after_ms: 5000, lasts_ms: 60_000, as_unavailable: false };
    let world = world_with(|faults| faults.outage = Some(outage));
    assert_eq!(get(&world, &contratos(1)).status, 200);
    tokio::time::advance(Duration::from_secs(6)).await;
    let answer = world.answer(&Request::get(&contratos(1)));
    assert_eq!((answer.ending, answer.delay.as_secs()), (Ending::Hang, 59));
    tokio::time::advance(Duration::from_secs(30)).await;
    // Set again with something else beside it, it goes on.
    let mut faults = world.faults();
    faults.latency.fixed_ms = 1;
    world.set_faults(faults).unwrap();
    assert_eq!(get(&world, &contratos(1)).ending, Ending::Hang);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(get(&world, &contratos(1)).status, 200);
    assert_eq!(world.stats().by_status["hang"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_outage_may_say_unavailable() {
    let outage = Outage { after_ms: 0, lasts_ms: 1000, as_unavailable: true };
    let world = world_with(|faults| faults.outage = Some(outage));
    assert_eq!(get(&world, &contratos(1)).status, 503);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(get(&world, &contratos(1)).status, 200);
}
