//! More requests at once than the world bears.

use std::time::Duration;

use lavra_world::{Answer, InFlight, Request, World};

use crate::support::{contratos, world_with};

fn limited(limits: &[u64], as_server_error: bool) -> World {
    let limits = limits.to_vec();
    world_with(|faults| {
        faults.in_flight = Some(InFlight { limits, every_ms: 60_000, as_server_error });
    })
}

fn together(world: &World, count: usize) -> Vec<u16> {
    let answers: Vec<Answer> =
        (0..count).map(|_| world.answer(&Request::get(&contratos(1)))).collect();
    answers.iter().map(|answer| answer.status).collect()
}

#[test]
fn the_surplus_is_refused_and_the_rest_is_served() {
    let world = limited(&[3], false);
    assert_eq!(together(&world, 5), [200, 200, 200, 429, 429]);
    assert_eq!(together(&world, 3), [200, 200, 200], "those before have gone");
    let stats = world.stats();
    assert_eq!((stats.in_flight, stats.most_in_flight), (0, 5));
    assert_eq!(together(&limited(&[1], true), 2), [200, 500]);
}

#[tokio::test(start_paused = true)]
async fn the_limit_follows_its_schedule() {
    let world = limited(&[8, 2, 6], false);
    let served =
        |world: &World| together(world, 10).iter().filter(|status| **status == 200).count();
    for expected in [8, 2, 6, 8] {
        assert_eq!(served(&world), expected);
        tokio::time::advance(Duration::from_mins(1)).await;
    }
}
