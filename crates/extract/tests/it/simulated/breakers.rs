//! An endpoint that is away is no reason to wait with another.

use std::time::Duration;

use lavra_extract::event::Event;
use lavra_extract::model::Status;
use lavra_world::{Faults, WorldConfig};

use super::outside::{Asked, Trouble, reply};
use super::{ATAS, CLASSE, CONTRATOS, PREGOES, PROPOSTAS, Simulation, latency};

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

/// A year, and what there is today, have no days that could be asked for instead.
#[tokio::test(start_paused = true)]
async fn a_page_that_always_fails_is_no_outage_where_nobody_knows_days() {
    for list in [CLASSE, PROPOSTAS] {
        for page in [1, 3] {
            let trouble: Trouble = Box::new(move |asked| {
                let is_it = asked.path == list.1.path() && asked.page == page;
                let is_it = is_it && asked.year.is_none_or(|year| year == 2026);
                is_it.then(|| Ok(reply(500, r#"{"message":"Erro ao processar a consulta."}"#)))
            });
            let config = WorldConfig { seed: 4, scale: 0.01, ..WorldConfig::default() };
            let faults = Faults { latency: latency(300), ..Faults::default() };
            let mut simulation = Simulation::new(config, faults, trouble, &[list, ATAS]);
            simulation.months = ("2026-10", "2026-10");
            for endpoint in &mut simulation.source.endpoints {
                if let Some(fan_out) = endpoint.fan_out.as_mut().filter(|f| f.values.is_empty()) {
                    fan_out.values.push("7512".into());
                }
            }
            let ran = simulation.run().await;
            let (summary, took) = (&ran.summary, simulation.outside.begun.elapsed());
            let what = format!("page {page} of {}: {summary:?} after {took:?}", list.0);
            let (partial, failed, pending) = match (page, list) {
                // Nothing else of it can be asked for: it may well be away.
                (1, PROPOSTAS) => (0, 0, 1),
                (1, _) => (0, 1, 0),
                _ => (1, 0, 0),
            };
            assert_eq!((summary.complete, summary.partial), (1, partial), "{what}");
            assert_eq!((summary.failed, summary.pending), (failed, pending), "{what}");
            let is_away = pending > 0;
            assert_eq!(!ran.outages().0.is_empty(), is_away, "{what}");
            assert!((took < Duration::from_secs(7200)) != is_away, "{what}");
        }
    }
}
