//! An endpoint that is away is no reason to wait with another.

use std::time::Duration;

use lavra_extract::event::Event;
use lavra_extract::model::Status;
use lavra_world::{Faults, WorldConfig};

use super::outside::{Asked, Trouble, reply};
use super::{ATAS, CONTRATOS, PREGOES, Simulation, latency};

const BACK: Duration = Duration::from_secs(3600);

/// Contracts fail from `since` on until an hour has passed.
async fn without_contracts(since: Duration, months: (&'static str, &'static str), count: usize) {
    let trouble: Trouble = Box::new(move |asked| {
        let is_away = asked.path == "/v1/contratos" && (since..BACK).contains(&asked.at);
        is_away.then(|| Ok(reply(500, r#"{"message":"Failed to obtain JDBC Connection"}"#)))
    });
    let config = WorldConfig { seed: 21, scale: 0.003, ..WorldConfig::default() };
    let faults = Faults { latency: latency(6000), ..Faults::default() };
    let mut simulation = Simulation::new(config, faults, trouble, &[CONTRATOS, ATAS, PREGOES]);
    // More of those that are away than are worked on at once.
    simulation.months = months;
    let ran = simulation.run().await;
    let summary = &ran.summary;
    assert_eq!((summary.complete, summary.is_short()), (3 * count, false), "{summary:?}");
    simulation.assert_true().await;

    assert_eq!(ran.outages(), (vec![CONTRATOS.0], vec![CONTRATOS.0]));
    let ended = |list: &'static str| {
        let ended = ran.told(move |event| match event {
            Event::TaskEnded { task, status, .. } => {
                task.0.starts_with(list) && *status == Status::Complete
            }
            _ => false,
        });
        ended.map(|told| told.at).collect::<Vec<_>>()
    };
    for list in [ATAS.0, PREGOES.0] {
        let times = ended(list);
        assert_eq!(times.len(), count);
        let last = times.into_iter().max().unwrap();
        let noticed = since + Duration::from_secs(120);
        assert!(last > noticed, "{list} ended after {last:?}, before anything was away");
        assert!(last < BACK / 2, "{list} ended only after {last:?}");
    }
    assert!(ended(CONTRATOS.0).into_iter().max().unwrap() > BACK);
    let asked = simulation.outside.asked();
    let is_probe =
        |asked: &&Asked| asked.path == "/v1/contratos" && (since..BACK).contains(&asked.at);
    let probes = asked.iter().filter(is_probe).count();
    assert!(probes < 120, "{probes} requests for what is away");
}

#[tokio::test(start_paused = true)]
async fn it_is_away_from_the_beginning() {
    without_contracts(Duration::ZERO, ("2023-01", "2024-12"), 24).await;
}

#[tokio::test(start_paused = true)]
async fn it_goes_away_while_it_is_read() {
    without_contracts(Duration::from_secs(60), ("2024-05", "2025-04"), 12).await;
}

/// When all else is there and one page is missing, its failures look like an outage.
#[tokio::test(start_paused = true)]
async fn a_page_that_always_fails_is_no_outage() {
    let trouble: Trouble = Box::new(|asked| {
        let is_it = asked.path == "/v1/contratos" && asked.page == 7 && asked.from.month() == 3;
        is_it.then(|| Ok(reply(500, r#"{"message":"Erro ao processar a consulta."}"#)))
    });
    let config = WorldConfig { seed: 4, scale: 0.003, ..WorldConfig::default() };
    let faults = Faults { latency: latency(300), ..Faults::default() };
    let simulation = Simulation::new(config, faults, trouble, &[CONTRATOS, ATAS]);
    let ran = simulation.run().await;
    assert_eq!((ran.summary.complete, ran.summary.partial), (3, 1), "{:?}", ran.summary);
    assert_eq!(ran.outages(), (vec![], vec![]));
    let took = simulation.outside.begun.elapsed();
    assert!(took < Duration::from_secs(900), "{took:?}");
    let tasks = simulation.tasks().await;
    let task = tasks.iter().find(|task| task.status == Status::Partial).unwrap();
    assert!(
        task.last_error.as_deref().unwrap().starts_with("1 pages could not be had: status 500")
    );
    assert_eq!(simulation.memory.missing(&task.task_id), [7]);
}
