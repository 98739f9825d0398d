//! The claim of a mission costs the same however many wait.

use std::time::{Duration, Instant};

use lavra_fleet::model::WorkerId;
use lavra_fleet::store::Assigned;
use lavra_tasks::model::Token;

use crate::schema::fill;
use crate::support::World;

const CLAIMS: usize = 100;

/// So many missions that wait, and workers that are ready to take some.
struct Queue {
    world: World,
    workers: Vec<(WorkerId, Token)>,
}

impl Queue {
    async fn of(count: usize) -> Self {
        let world = World::on_postgres().await;
        fill(&world, count, "now() - interval '1 day' + n * interval '1 microsecond'").await;
        let (_, workers) = world.fleet(CLAIMS).await;
        for worker in &workers {
            world.make_ready(worker).await;
        }
        Self { world, workers }
    }

    /// How long the claim at this place takes, which is in the order of the queue.
    async fn claim(&self, place: usize) -> Duration {
        let (worker, token) = &self.workers[place];
        let start = Instant::now();
        let assigned = self.world.store.assign(worker, *token).await.unwrap();
        let took = start.elapsed();
        let Assigned::With(view) = assigned else { panic!("{assigned:?}") };
        assert_eq!(view.mission.unwrap().id.0, format!("mis_{:032x}", place + 1));
        took
    }
}

/// The median times of a claim among a thousand and among a million, in turns: what happens on the
/// machine meanwhile happens to both.
async fn medians() -> [Duration; 2] {
    let (few, many) = (Queue::of(1_000).await, Queue::of(1_000_000).await);
    let mut times = [Vec::new(), Vec::new()];
    for place in 0..CLAIMS {
        times[0].push(few.claim(place).await);
        times[1].push(many.claim(place).await);
    }
    times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_among_a_million_costs_no_more_than_one_among_a_thousand() {
    // Other tests run beside this one: what one noisy round says, another takes back.
    let mut said = Vec::new();
    for _ in 0..3 {
        let [few, many] = medians().await;
        let ratio = many.as_secs_f64() / few.as_secs_f64();
        said.push(format!("{few:?} among 10^3, {many:?} among 10^6: {ratio:.2}"));
        if ratio <= 1.3 {
            return;
        }
    }
    panic!("the claim is not flat: {said:#?}");
}
