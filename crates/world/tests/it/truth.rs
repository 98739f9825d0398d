//! What the world holds, and that its pages are just that.

use std::collections::HashSet;

use jiff::ToSpan;
use lavra_world::{Endpoint, World, WorldConfig};

use crate::support::{config, date, days, get, read_all, windows, world};

#[test]
fn the_count_of_a_month_is_the_sum_of_its_days() {
    let world = world();
    for endpoint in Endpoint::ALL {
        // Lists of what is in force and of whole years have no days to add up.
        let alone = matches!(endpoint, Endpoint::Atas | Endpoint::Pca | Endpoint::PcaUsuario);
        if alone || endpoint == Endpoint::ContratacoesProposta {
            continue;
        }
        let (first, last) = (date("20260301"), date("20260331"));
        // The last day of pca/atualizacao does not count.
        let more = i64::from(endpoint == Endpoint::PcaAtualizacao);
        let total = |from, to: jiff::civil::Date| {
            world.truth(endpoint, None, from, to.checked_add(more.days()).unwrap()).total()
        };
        let sum: u64 = (0..31)
            .map(|day| first.checked_add(day.days()).unwrap())
            .map(|day| total(day, day))
            .sum();
        assert!(sum > 0, "{endpoint}");
        assert_eq!(sum, total(first, last), "{endpoint}");
    }
}

#[test]
fn fan_out_values_add_up_to_the_whole() {
    let world = world();
    let (first, last) = (date("20260301"), date("20260331"));
    let endpoint = Endpoint::ContratacoesPublicacao;
    let each: Vec<u64> =
        (1..=14).map(|code| world.truth(endpoint, Some(code), first, last).total()).collect();
    assert_eq!(each.iter().sum::<u64>(), world.truth(endpoint, None, first, last).total());
    assert!(each.contains(&0), "some modalidades are empty at this scale: {each:?}");
    assert!(each[7] > each[5] && each[5] > each[3], "{each:?}");
}

#[test]
fn price_registers_of_a_day_are_those_in_force_on_it() {
    let world = world();
    let total = |from, to| world.truth(Endpoint::Atas, None, date(from), date(to)).total();
    let (day, month) = (total("20250710", "20250710"), total("20250701", "20250731"));
    assert!(day > 3000 && month > day && month < day * 5 / 4, "{day} and {month}");
}

#[test]
fn the_pages_of_a_window_are_its_truth_with_every_record_once() {
    let world = world();
    for (endpoint, fan_out, query) in windows() {
        let (from, to) = days(endpoint);
        let truth = world.truth(endpoint, fan_out, from, to);
        let expected: Vec<_> = truth.entries().collect();
        assert_eq!(expected.len() as u64, truth.total());
        assert!(truth.total() > 20, "{endpoint}: {}", truth.total());
        for size in [10, endpoint.page_cap()] {
            assert_eq!(read_all(&world, endpoint, &query, size), expected, "{endpoint} by {size}");
        }
        let keys: HashSet<String> = truth.keys().collect();
        assert_eq!(keys.len(), expected.len(), "{endpoint}: keys are unique");
        assert!(
            expected.iter().map(|entry| &entry.key).eq(truth.keys().collect::<Vec<_>>().iter())
        );
    }
}

#[test]
fn keys_are_unique_over_years_and_modalidades() {
    let world = World::new(WorldConfig { scale: 0.2, ..config() });
    for endpoint in [Endpoint::Contratos, Endpoint::ContratacoesPublicacao] {
        let truth = world.truth(endpoint, None, date("20231201"), date("20240131"));
        let keys: HashSet<String> = truth.keys().collect();
        assert_eq!(keys.len() as u64, truth.total());
        assert!(truth.total() > 10_000, "{}", truth.total());
    }
}

#[test]
fn a_record_of_the_truth_is_the_one_on_the_page() {
    let world = world();
    for (endpoint, fan_out, query) in windows() {
        let (from, to) = days(endpoint);
        let truth = world.truth(endpoint, fan_out, from, to);
        let page = get(&world, &format!("{endpoint}?{query}&pagina=2&tamanhoPagina=10")).json();
        let record = truth.record(10).unwrap();
        let mut first = page["data"][0].clone();
        if let Some(items) = first.get_mut("itens").and_then(|items| items.as_array_mut()) {
            items.truncate(1);
        }
        assert_eq!(first, record, "{endpoint}");
        assert_eq!(truth.record(truth.total()), None);
    }
}

#[test]
fn two_worlds_of_one_seed_are_the_same_to_the_byte() {
    let targets: Vec<String> = windows()
        .into_iter()
        .map(|(endpoint, _, query)| format!("{endpoint}?{query}&pagina=1&tamanhoPagina=10"))
        .collect();
    let read = |world: World| -> Vec<String> {
        targets.iter().map(|target| get(&world, target).text).collect()
    };
    let first = read(world());
    assert_eq!(first, read(world()));
    assert_ne!(first, read(World::new(WorldConfig { seed: 8, ..config() })));
}

#[test]
fn the_bytes_of_a_page_fetched_again_differ_and_its_records_do_not() {
    let world = world();
    for (endpoint, _, query) in windows() {
        let target = format!("{endpoint}?{query}&pagina=1&tamanhoPagina=10");
        let (first, again) = (get(&world, &target).text, get(&world, &target).text);
        assert_ne!(first, again, "{endpoint}");
        assert_eq!(
            lavra_world::page_entries(endpoint, &first).unwrap(),
            lavra_world::page_entries(endpoint, &again).unwrap()
        );
        assert_eq!(
            lavra_world::canonical(&first).unwrap(),
            lavra_world::canonical(&again).unwrap()
        );
    }
}

#[test]
fn the_keys_of_one_page_stand_in_one_order() {
    let world = world();
    let order_of = |page: &str| -> Vec<Vec<String>> {
        let page: Page<'_> = serde_json::from_str(page).unwrap();
        page.data.iter().map(|record| order(record.get())).collect()
    };
    let target = "/v1/atas?dataInicial=20240701&dataFinal=20240731&pagina=1&tamanhoPagina=20";
    let (first, again) = (order_of(&get(&world, target).text), order_of(&get(&world, target).text));
    assert!(first.iter().all(|order| *order == first[0]) && again.iter().all(|o| *o == again[0]));
    assert_ne!(first[0], again[0]);
}

#[derive(serde::Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<&'a serde_json::value::RawValue>,
}

/// The names of a record's fields as they stand.
fn order(record: &str) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_str(record).unwrap();
    let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    names.sort_by_key(|name| record.find(&format!("\"{name}\":")));
    names
}

#[test]
fn a_world_of_any_size_answers() {
    for scale in [f64::NAN, -1.0, 0.0, 1e300, f64::INFINITY] {
        let world = World::new(WorldConfig { scale, ..config() });
        for (endpoint, _, query) in windows() {
            let taken = get(&world, &format!("{endpoint}?{query}&pagina=1&tamanhoPagina=10"));
            assert!(taken.status < 500, "{scale}: {taken:?}");
        }
    }
}
