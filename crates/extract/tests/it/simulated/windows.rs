//! Windows that are too much for the server are halved, until they are not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use lavra_extract::model::{ExtractionId, Totals, Window};
use lavra_extract::store::Reads as _;
use lavra_world::{At, Change, Endpoint, Faults, WorldConfig};

use super::outside::{Trouble, reply};
use super::{CONTRATOS, List, PREGOES, Simulation, latency};

/// The server has no answer for windows of more than so many days.
fn too_wide(most: i32) -> Trouble {
    Box::new(move |asked| {
        let failed = reply(500, r#"{"message":"Erro ao processar a consulta."}"#);
        (asked.days() > most).then_some(Ok(failed))
    })
}

fn simulation(trouble: Trouble, faults: Faults, lists: &[List]) -> Simulation {
    let config = WorldConfig { seed: 9, scale: 0.004, ..WorldConfig::default() };
    Simulation::new(config, Faults { latency: latency(200), ..faults }, trouble, lists)
}

/// The windows of a task have each of its days once, and page numbers of their own; what is stored
/// under them is all that they promise.
async fn assert_apart(simulation: &Simulation, task: &ExtractionId, most: i32) -> Vec<Window> {
    let mut windows = simulation.windows(task).await;
    windows.sort_by_key(|window| window.first_day);
    let row = simulation.memory.task(task).await.unwrap().unwrap();
    let mut day = row.data_date;
    for window in &windows {
        assert_eq!(window.first_day, day, "{windows:?}");
        let days = window.first_day.until(window.last_day).unwrap().get_days() + 1;
        assert!((1..=most).contains(&days), "{window:?}");
        day = window.last_day.tomorrow().unwrap();
    }
    assert_eq!(day, row.data_date.last_of_month().tomorrow().unwrap(), "{windows:?}");

    let max_pages = simulation.source.limits.max_pages;
    let mut by_base: BTreeMap<i64, &Window> = BTreeMap::new();
    for window in &windows {
        assert!(by_base.insert(window.base, window).is_none(), "{windows:?}");
        assert_eq!(window.base % max_pages, 0, "{window:?}");
    }
    let promised: i64 = windows.iter().map(|window| window.totals.unwrap().pages).sum();
    assert_eq!(row.total_pages, Some(promised));
    windows
}

#[tokio::test(start_paused = true)]
async fn a_month_that_is_too_wide_is_read_in_parts() {
    for most in [20, 10, 5, 1] {
        let simulation = simulation(too_wide(most), Faults::default(), &[CONTRATOS]);
        let ran = simulation.run().await;
        assert_eq!(ran.summary.complete, 2, "at most {most} days: {:?}", ran.summary);
        simulation.assert_true().await;
        for task in simulation.tasks().await {
            let windows = assert_apart(&simulation, &task.task_id, most).await;
            let days = i32::from(task.data_date.days_in_month());
            assert!(windows.len() as i32 >= days / most, "{windows:?}");
        }
        let asked = simulation.outside.asked().len() as u64;
        let failed: u64 = ran.summary.failures.values().sum();
        assert_eq!(asked, ran.summary.requests);
        assert!(failed <= 150, "at most {most} days: {failed} failures");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_wide_does_not_concern_another() {
    let wide = too_wide(10);
    let trouble: Trouble =
        Box::new(move |asked| if asked.path == "/v1/contratos" { wide(asked) } else { None });
    let simulation = simulation(trouble, Faults::default(), &[CONTRATOS, PREGOES]);
    let ran = simulation.run().await;
    assert_eq!(ran.summary.complete, 4, "{:?}", ran.summary);
    simulation.assert_true().await;
    for task in simulation.tasks().await {
        let count = simulation.windows(&task.task_id).await.len();
        assert_eq!(count > 1, task.endpoint_name == CONTRATOS.0, "{}: {count}", task.task_id);
    }
}

/// A month is read, its total moves, and from then on the server cannot bear the whole month.
#[tokio::test(start_paused = true)]
async fn a_month_that_becomes_too_wide_after_its_total_moved_is_complete_all_the_same() {
    let (wide, asked_before) = (too_wide(10), AtomicBool::new(false));
    let trouble: Trouble = Box::new(move |asked| {
        let is_again = asked.page == 1 && asked_before.swap(true, Ordering::Relaxed);
        if is_again { wide(asked) } else { None }
    });
    let change = Change {
        endpoint: Endpoint::Contratos,
        month: "2025-03".into(),
        fan_out: None,
        after: 12,
        records: 35,
        at: At::Middle,
    };
    let faults = Faults { drift: vec![change], ..Faults::default() };
    let mut simulation = simulation(trouble, faults, &[CONTRATOS]);
    simulation.months = ("2025-03", "2025-03");
    let ran = simulation.run().await;
    assert!(ran.summary.drifts > 0, "{:?}", ran.summary);
    assert_eq!(ran.summary.complete, 1, "{:?}", ran.summary);
    simulation.assert_true().await;
    assert_apart(&simulation, &simulation.tasks().await[0].task_id, 10).await;
}

/// The sums of a halved month are those of its windows.
#[tokio::test(start_paused = true)]
async fn the_totals_of_a_task_are_the_sums_of_its_windows() {
    let simulation = simulation(too_wide(16), Faults::default(), &[PREGOES]);
    simulation.run().await;
    for task in simulation.tasks().await {
        let windows = simulation.windows(&task.task_id).await;
        let sum = windows.iter().filter_map(|window| window.totals).fold(
            Totals { records: 0, pages: 0 },
            |sum, totals| Totals {
                records: sum.records + totals.records,
                pages: sum.pages + totals.pages,
            },
        );
        assert_eq!((task.total_records, task.total_pages), (Some(sum.records), Some(sum.pages)));
    }
}
