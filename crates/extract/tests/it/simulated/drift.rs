//! Totals that move, lie, or never add up.

use lavra_extract::model::Status;
use lavra_world::{At, Change, Endpoint, Faults, WorldConfig};

use super::outside::{Trouble, reply};
use super::{COBRANCAS, CONTRATOS, PREGOES, Simulation, latency};

fn simulation(seed: u64, faults: Faults, trouble: Trouble) -> Simulation {
    let config = WorldConfig { seed, scale: 0.003, ..WorldConfig::default() };
    let faults = Faults { latency: latency(300), ..faults };
    Simulation::new(config, faults, trouble, &[CONTRATOS, PREGOES, COBRANCAS])
}

fn change(endpoint: Endpoint, fan_out: Option<u16>, after: u64, records: i64, at: At) -> Change {
    Change { endpoint, month: "2025-03".into(), fan_out, after, records, at }
}

#[tokio::test(start_paused = true)]
async fn totals_that_grow_and_shrink_end_complete_with_the_right_records() {
    for seed in 1..=8 {
        let at = |turn: u64| [At::Start, At::Middle, At::End][((seed + turn) % 3) as usize];
        let (contratos, pregoes) = (Endpoint::Contratos, Endpoint::ContratacoesPublicacao);
        let drift = vec![
            change(contratos, None, 2 + seed, 17 * seed as i64, at(0)),
            change(contratos, None, 30 + 3 * seed, -13 - 11 * seed as i64, at(1)),
            change(pregoes, Some(6), 5 + seed, -9 * seed as i64, at(2)),
            change(pregoes, Some(6), 20, 1, at(seed)),
            change(Endpoint::InstrumentosCobranca, None, 1 + seed, 25, at(1)),
        ];
        let simulation =
            simulation(seed, Faults { drift, ..Faults::default() }, Box::new(|_| None));
        let ran = simulation.run().await;
        assert_eq!(ran.summary.complete, 6, "seed {seed}: {:?}", ran.summary);
        assert!(ran.summary.drifts >= 1, "seed {seed}: {:?}", ran.summary);
        simulation.assert_true().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_billion_records_are_refused_before_they_are_counted() {
    let wall = std::time::Instant::now();
    let faults = Faults { huge_total: 1.0, ..Faults::default() };
    let simulation = simulation(1, faults, Box::new(|_| None));
    let ran = simulation.run().await;
    let summary = &ran.summary;
    assert_eq!((summary.failed, summary.pages), (6, 0), "{summary:?}");
    assert_eq!(summary.requests, 12, "each is asked for once more before it is believed");
    for task in simulation.tasks().await {
        assert_eq!(task.status, Status::Failed);
        let error = task.last_error.unwrap();
        assert!(error.contains("1000000000 records") && error.contains("max_pages"), "{error}");
        assert!(simulation.memory.missing(&task.task_id).is_empty());
    }
    assert!(wall.elapsed().as_secs() < 5, "{:?}", wall.elapsed());
}

/// A page says another total each time: no two agree, and none is the one of page 1.
#[tokio::test(start_paused = true)]
async fn a_total_that_is_another_each_time_is_told_after_three_discoveries() {
    let counted = std::sync::atomic::AtomicU64::new(1000);
    let trouble: Trouble = Box::new(move |asked| {
        let moves = asked.path == "/v1/contratos" && asked.from.month() == 3;
        moves.then(|| {
            let total = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let data = [r#"{"numeroControlePNCP":"x"}"#; 10].join(",");
            let body = format!(r#"{{"data":[{data}],"totalRegistros":{total}}}"#);
            Ok(lavra_extract::reading::Reply { body: body.into(), ..reply(200, "") })
        })
    });
    let simulation = simulation(2, Faults::default(), trouble);
    let ran = simulation.run().await;
    assert_eq!((ran.summary.complete, ran.summary.partial), (5, 1), "{:?}", ran.summary);
    let tasks = simulation.tasks().await;
    let task = tasks.iter().find(|task| task.status == Status::Partial).unwrap();
    assert_eq!((task.endpoint_name.as_str(), task.discoveries), (CONTRATOS.0, 3));
    let error = task.last_error.as_deref().unwrap();
    assert!(error.starts_with("drifted by "), "{error}");
}

/// A page has fewer records than it should, however often it is asked for.
#[tokio::test(start_paused = true)]
async fn a_page_that_stays_short_is_told_after_three_discoveries() {
    let config = WorldConfig { seed: 2, scale: 0.003, ..WorldConfig::default() };
    let now = Some(super::NOW.parse().unwrap());
    let twin = lavra_world::World::new(WorldConfig { now, ..config });
    let first = jiff::civil::date(2025, 3, 1);
    let total = twin.truth(Endpoint::Contratos, None, first, first.last_of_month()).total();
    let trouble: Trouble = Box::new(move |asked| {
        let is_short = asked.path == "/v1/contratos" && asked.from == first && asked.page == 4;
        is_short.then(|| {
            let data = [r#"{"numeroControlePNCP":"x"}"#; 7].join(",");
            let body = format!(r#"{{"data":[{data}],"totalRegistros":{total}}}"#);
            Ok(lavra_extract::reading::Reply { body: body.into(), ..reply(200, "") })
        })
    });
    let simulation = simulation(2, Faults::default(), trouble);
    let ran = simulation.run().await;
    assert_eq!((ran.summary.complete, ran.summary.partial), (5, 1), "{:?}", ran.summary);
    let tasks = simulation.tasks().await;
    let task = tasks.iter().find(|task| task.status == Status::Partial).unwrap();
    assert_eq!(task.last_error.as_deref(), Some("short by 3"));
    assert_eq!((task.discoveries, simulation.memory.missing(&task.task_id)), (3, vec![4]));
}
