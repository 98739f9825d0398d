//! Ten minutes without the source: the run pauses, probes, says so, and goes on.

use std::time::Duration;

use lavra_extract::reading::{self, Reply};
use lavra_world::{Faults, WorldConfig};

use super::outside::{Trouble, reply};
use super::{ATAS, CONTRATOS, PREGOES, Simulation, latency};

const LASTS: Duration = Duration::from_secs(600);
/// Until the breakers open there is no telling an outage from a bad moment.
const NOTICED: Duration = Duration::from_secs(60);

/// What everyone hears while it lasts.
#[derive(Clone, Copy, Debug)]
enum Heard {
    Refused,
    Unavailable,
    TooMany,
}

impl Heard {
    fn answer(self) -> Result<Reply, reading::Trouble> {
        match self {
            Self::Refused => Err(reading::Trouble::Connection("connection refused".into())),
            Self::Unavailable => Ok(reply(503, "<html>Service Unavailable</html>")),
            Self::TooMany => Ok(reply(429, "<html>Limite de Requisições Excedido</html>")),
        }
    }
}

async fn through(begins: Duration, heard: Heard) {
    let trouble: Trouble =
        Box::new(move |asked| (begins..begins + LASTS).contains(&asked.at).then(|| heard.answer()));
    let config = WorldConfig { seed: 5, scale: 0.008, ..WorldConfig::default() };
    let faults = Faults { latency: latency(800), ..Faults::default() };
    let lists = [CONTRATOS, ATAS, PREGOES];
    let simulation = Simulation::new(config, faults, trouble, &lists);
    let ran = simulation.run().await;

    let summary = &ran.summary;
    assert_eq!((summary.complete, summary.is_short()), (6, false), "{summary:?}");
    let compared = simulation.assert_true().await;
    assert!(compared > 1000, "only {compared} records");
    for task in simulation.tasks().await {
        let windows = simulation.windows(&task.task_id).await;
        assert_eq!(windows.len(), 1, "{}: an outage says nothing of its size", task.task_id);
    }
    assert!(simulation.outside.begun.elapsed() > begins + LASTS, "it was over before");

    let (away, back) = ran.outages();
    assert!(!away.is_empty() && away == back, "away {away:?}, back {back:?}");
    let at_first = simulation.outside.asked_during(begins..begins + NOTICED);
    assert!(at_first <= 120, "{at_first} requests before it was noticed");
    let probes = simulation.outside.asked_during(begins + NOTICED..begins + LASTS);
    assert!((1..=13 * lists.len()).contains(&probes), "{probes} probes");
}

const MIDST: Duration = Duration::from_secs(12);

#[tokio::test(start_paused = true)]
async fn nobody_answers_in_the_midst_of_a_run() {
    through(MIDST, Heard::Refused).await;
}

#[tokio::test(start_paused = true)]
async fn everything_is_unavailable_in_the_midst_of_a_run() {
    through(MIDST, Heard::Unavailable).await;
}

#[tokio::test(start_paused = true)]
async fn everything_is_too_much_in_the_midst_of_a_run() {
    through(MIDST, Heard::TooMany).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_from_the_first_page_on() {
    through(Duration::ZERO, Heard::Refused).await;
}

#[tokio::test(start_paused = true)]
async fn everything_is_unavailable_from_the_first_page_on() {
    through(Duration::ZERO, Heard::Unavailable).await;
}

#[tokio::test(start_paused = true)]
async fn everything_is_too_much_from_the_first_page_on() {
    through(Duration::ZERO, Heard::TooMany).await;
}

/// The world's own kind: connections that stay open and say nothing.
#[tokio::test(start_paused = true)]
async fn everything_hangs_in_the_midst_of_a_run() {
    let config = WorldConfig { seed: 6, scale: 0.008, ..WorldConfig::default() };
    let outage = lavra_world::Outage { after_ms: 12_000, lasts_ms: 600_000, as_unavailable: false };
    let faults = Faults { latency: latency(800), outage: Some(outage), ..Faults::default() };
    let simulation = Simulation::new(config, faults, Box::new(|_| None), &[CONTRATOS, ATAS]);
    let ran = simulation.run().await;
    assert_eq!(ran.summary.complete, 4, "{:?}", ran.summary);
    simulation.assert_true().await;
    let asked = simulation.outside.asked_during(MIDST..MIDST + LASTS);
    assert!(asked <= 100, "{asked} requests");
}
