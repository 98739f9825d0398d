//! Two processes share a plan, and their hearts stop now and then for so long that the other takes
//! what they hold; but they go on. What the other has stored by then they do not ask for.

use std::time::Duration;

use lavra_extract::Memory;
use lavra_extract::event::Event;
use lavra_tasks::Pulse;
use lavra_tasks::model::ProcessId;
use lavra_world::{Faults, WorldConfig};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;
use uuid::Uuid;

use super::outside::Asked;
use super::{CONTRATOS, PREGOES, Simulation, latency};

const SEEDS: u64 = 24;

/// A heart that fails now and then.
async fn beat(memory: Memory, process: ProcessId, pulse: Pulse, mut dice: StdRng) {
    loop {
        let begun = Instant::now();
        memory.beat(process);
        pulse.felt(begun);
        let silence = if dice.random_bool(0.2) { dice.random_range(6_000..30_000) } else { 3_000 };
        tokio::time::sleep(Duration::from_millis(silence)).await;
    }
}

/// All that was asked for, and how often a task was lost.
async fn live(seed: u64) -> (Vec<Asked>, usize) {
    let mut dice = StdRng::seed_from_u64(seed);
    let config = WorldConfig { seed, scale: 0.004, ..WorldConfig::default() };
    let faults = Faults {
        latency: latency(dice.random_range(50..2_000)),
        server_error: dice.random_range(0.0..0.05),
        ..Faults::default()
    };
    let mut simulation = Simulation::new(config, faults, Box::new(|_| None), &[CONTRATOS, PREGOES]);
    let distance = Duration::from_millis(dice.random_range(0..80));
    simulation.memory = simulation.memory.at_distance(distance);
    simulation.source.limits.in_flight = dice.random_range(1..=16);
    simulation.settings.tasks = dice.random_range(1..=4);
    let wanted = simulation.wanted();
    let mut running = tokio::task::JoinSet::new();
    let mut listening = tokio::task::JoinSet::new();
    let mut hearts = tokio::task::JoinSet::new();
    for number in 1..=2 {
        let process = ProcessId(Uuid::from_u128((seed * 10 + number).into()));
        let pulse = Pulse::new(simulation.settings.stale);
        simulation.memory.beat(process);
        let dice = StdRng::seed_from_u64(dice.random());
        hearts.spawn(beat(simulation.memory.clone(), process, pulse.clone(), dice));
        let (mut extractor, mut heard) = simulation.extractor(process);
        extractor.pulse = pulse;
        listening.spawn(async move {
            let mut lost = 0;
            while let Some(event) = heard.recv().await {
                lost += usize::from(matches!(event, Event::TaskLost { .. }));
            }
            lost
        });
        let wanted = wanted.clone();
        running.spawn(async move { extractor.run(&wanted, false).await.unwrap() });
    }
    let ended = running.join_all().await;
    assert!(ended.iter().all(|summary| !summary.is_short()), "seed {seed}: {ended:?}");
    assert!(simulation.assert_true().await > 300, "seed {seed}");
    (simulation.outside.asked(), listening.join_all().await.iter().sum())
}

#[tokio::test(start_paused = true)]
async fn who_was_taken_for_dead_does_not_ask_for_what_the_other_has() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let (asked, more) = live(seed).await;
        let again: Vec<&Asked> = asked.iter().filter(|asked| asked.was_durable).collect();
        assert!(again.is_empty(), "seed {seed}: durable, and asked for again: {again:?}");
        lost += more;
    }
    assert!(lost > SEEDS as usize / 2, "few were ever taken for dead: {lost}");
}
