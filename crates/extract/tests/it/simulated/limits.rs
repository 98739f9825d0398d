//! What a server bears at once is found out and followed, by the whole extractor.

use std::time::Duration;

use jiff::civil::date;
use lavra_world::{Endpoint, Faults, Fixed, InFlight, WorldConfig};

use super::{CONTRATOS, Simulation, latency};

/// Over the last 40 s of each minute, at least this share of the best that is possible.
const SHARE: f64 = 0.8;

/// Reads for as many minutes as there are limits, from a server that refuses what is above them.
async fn follow(limits: &[u64], millis: u64, as_server_error: bool) {
    let fixed = Fixed {
        endpoint: Endpoint::Contratos,
        fan_out: 0,
        month: date(2025, 3, 1),
        pages: 20_000,
        page_size: 10,
        page_bytes: 0,
    };
    let config = WorldConfig { seed: 3, scale: 1.0, now: None, fixed: Some(fixed) };
    let in_flight = InFlight { limits: limits.to_vec(), every_ms: 60_000, as_server_error };
    let faults =
        Faults { latency: latency(millis), in_flight: Some(in_flight), ..Faults::default() };
    let mut simulation = Simulation::new(config, faults, Box::new(|_| None), &[CONTRATOS]);
    simulation.months = ("2025-03", "2025-03");
    let (process, _alive) = simulation.process(1);
    let (extractor, _heard) = simulation.extractor(process);
    let minute = Duration::from_secs(60);
    let all = minute * limits.len() as u32;
    let ended = tokio::time::timeout(all, extractor.run(&simulation.wanted(), false)).await;
    assert!(ended.is_err(), "there was not enough to read");

    for (number, bears) in limits.iter().enumerate() {
        let begin = minute * number as u32;
        let measured = begin + Duration::from_secs(20)..begin + minute;
        let given = simulation.outside.given_during(measured);
        let mean = millis as f64 * 1.25 / 1000.0;
        let best = 40.0 * *bears as f64 / mean;
        let share = given as f64 / best;
        assert!(
            share >= SHARE,
            "minute {number} of {limits:?}: {given} pages, {share:.2} of what {bears} at once gives"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_at_once() {
    follow(&[1], 400, false).await;
}

#[tokio::test(start_paused = true)]
async fn three_at_once() {
    follow(&[3], 400, false).await;
}

#[tokio::test(start_paused = true)]
async fn eight_at_once() {
    follow(&[8], 400, false).await;
}

#[tokio::test(start_paused = true)]
async fn now_more_and_now_less() {
    follow(&[8, 2, 6], 400, false).await;
}

#[tokio::test(start_paused = true)]
async fn slow_and_now_more_and_now_less() {
    follow(&[8, 2, 6], 1000, false).await;
}

/// The portal says 500 as often as 429.
#[tokio::test(start_paused = true)]
async fn refused_as_an_error_of_the_server() {
    for bears in [1, 3, 8] {
        follow(&[bears], 400, true).await;
    }
    follow(&[8, 2, 6], 400, true).await;
}
