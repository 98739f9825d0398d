//! Totals that move while they are read.

use lavra_world::{At, Change, Endpoint, Entry, World};

use crate::support::{contratos, date, get, read_all, world, world_with};

fn change(records: i64, at: At, after: u64) -> Change {
    Change {
        endpoint: Endpoint::Contratos,
        month: "2024-07".into(),
        fan_out: None,
        after,
        records,
        at,
    }
}

fn july(world: &World) -> Vec<Entry> {
    world.truth(Endpoint::Contratos, None, date("20240701"), date("20240731")).entries().collect()
}

fn total(world: &World) -> u64 {
    get(world, &contratos(1)).json()["totalRegistros"].as_u64().unwrap()
}

#[test]
fn records_come_after_the_requests_that_do_not_see_them() {
    let before = july(&world()).len() as u64;
    let world = world_with(|faults| faults.drift = vec![change(5, At::End, 2)]);
    let seen: Vec<u64> = (0..4).map(|_| total(&world)).collect();
    assert_eq!(seen, [before, before, before + 5, before + 5]);
    assert_eq!(july(&world).len() as u64, before + 5);
}

#[test]
fn records_come_at_the_start_in_the_middle_and_at_the_end() {
    let before = july(&world());
    for (at, place) in [(At::Start, 0), (At::Middle, before.len() / 2), (At::End, before.len())] {
        let world = world_with(|faults| faults.drift = vec![change(7, at, 0)]);
        let after = july(&world);
        assert_eq!(after[..place], before[..place], "{at:?}");
        assert_eq!(after[place + 7..], before[place..], "{at:?}");
        let new = &after[place..place + 7];
        assert!(new.iter().all(|entry| before.iter().all(|old| old.key != entry.key)), "{at:?}");
        let query = "dataInicial=20240701&dataFinal=20240731";
        assert_eq!(read_all(&world, Endpoint::Contratos, query, 100), after);
    }
}

#[test]
fn records_go_from_the_start_the_middle_and_the_end() {
    let before = july(&world());
    let count = 300;
    let middle = (before.len() - count) / 2;
    for (at, place) in [(At::Start, 0), (At::Middle, middle), (At::End, before.len() - count)] {
        let world = world_with(|faults| faults.drift = vec![change(-300, at, 0)]);
        let after = july(&world);
        assert_eq!(after[..place], before[..place], "{at:?}");
        assert_eq!(after[place..], before[place + count..], "{at:?}");
    }
}

#[test]
fn more_cannot_go_than_there_is_and_an_emptied_month_can_fill_again() {
    let world = world_with(|faults| faults.drift = vec![change(-1_000_000, At::Middle, 0)]);
    assert_eq!(get(&world, &contratos(1)).status, 204);
    let mut faults = world.faults();
    faults.drift.push(change(3, At::End, 0));
    world.set_faults(faults).unwrap();
    assert_eq!(total(&world), 3);
}

#[test]
fn changes_follow_one_another_and_are_not_made_twice() {
    let before = july(&world()).len() as u64;
    let changes =
        vec![change(10, At::Start, 1), change(-4, At::Middle, 2), change(10, At::Start, 1)];
    let world = world_with(|faults| faults.drift = changes);
    let seen: Vec<u64> = (0..4).map(|_| total(&world)).collect();
    assert_eq!(seen, [before, before + 20, before + 16, before + 16]);
    // Set again as they are, the switches change nothing.
    world.set_faults(world.faults()).unwrap();
    assert_eq!(total(&world), before + 16);
    world.set_faults(lavra_world::Faults::default()).unwrap();
    assert_eq!(july(&world).len() as u64, before + 16);
}

#[test]
fn only_requests_for_the_list_and_month_count() {
    let world = world_with(|faults| faults.drift = vec![change(5, At::End, 1)]);
    let before = july(&world).len() as u64;
    for target in [
        "/v1/contratos?dataInicial=20240601&dataFinal=20240630&pagina=1",
        "/v1/contratos/atualizacao?dataInicial=20240701&dataFinal=20240731&pagina=1",
        "/v1/contratos?dataInicial=20240701&dataFinal=20240731",
    ] {
        get(&world, target);
        get(&world, target);
    }
    assert_eq!((total(&world), total(&world)), (before, before + 5));
}

#[test]
fn a_list_with_modalidades_changes_in_one_of_them() {
    let list = Endpoint::ContratacoesPublicacao;
    let with = |fan_out| Change { endpoint: list, fan_out, ..change(3, At::Middle, 0) };
    let world = world();
    let count = |code| world.truth(list, Some(code), date("20240701"), date("20240731")).total();
    let (six, eight) = (count(6), count(8));
    let mut faults = world.faults();
    for wrong in [None, Some(0), Some(25)] {
        faults.drift = vec![with(wrong)];
        assert!(world.set_faults(faults.clone()).unwrap_err().to_string().contains("fan_out"));
    }
    faults.drift = vec![with(Some(6))];
    world.set_faults(faults).unwrap();
    assert_eq!((count(6), count(8)), (six + 3, eight));
}

#[test]
fn plans_grow_by_items() {
    let list = Endpoint::Pca;
    let query = "anoPca=2025&codigoClassificacaoSuperior=7060";
    let before = read_all(&world(), list, query, 500);
    let grow = Change {
        endpoint: list,
        month: "2025-01".into(),
        fan_out: Some(7060),
        ..change(13, At::Middle, 0)
    };
    let world = world_with(|faults| faults.drift = vec![grow]);
    let after = read_all(&world, list, query, 500);
    assert_eq!(after.len(), before.len() + 13);
    let mut keys: Vec<&String> = after.iter().map(|entry| &entry.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), after.len());
}
