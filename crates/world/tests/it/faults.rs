//! Each switch shows, and nothing else does.

use lavra_world::{Body, Ending, Faults, Latency, Request, World};

use crate::support::{Taken, config, contratos, get, take, world, world_with};

/// The first answer of a world in which one thing always goes wrong.
fn first(change: impl FnOnce(&mut Faults)) -> Taken {
    let world = world_with(change);
    let taken = get(&world, &contratos(1));
    assert_eq!(world.stats().whole_pages, 0, "a fault is no page served");
    taken
}

#[test]
fn without_switches_nothing_fails() {
    let world = world();
    assert_eq!(world.faults(), Faults::default());
    for page in 1..=20 {
        let answer = world.answer(&Request::get(&contratos(page)));
        assert!(answer.delay.is_zero());
        assert_eq!((answer.status, answer.ending), (200, Ending::Whole));
        answer.delivered();
    }
    assert_eq!(world.stats().whole_pages, 20);
}

#[test]
fn too_many_requests_is_a_page_of_html_without_a_hint() {
    let taken = first(|faults| faults.too_many = 1.0);
    assert_eq!(taken.status, 429);
    assert!(
        taken.text.contains("Limite de Requisições Excedido") && taken.text.contains("Support ID")
    );
    assert_eq!(taken.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(taken.header("retry-after"), None);
}

#[test]
fn retry_after_is_a_number_or_a_date() {
    for seconds in [0, 7] {
        let taken = first(|faults| {
            faults.retry_after.share = 1.0;
            faults.retry_after.seconds = seconds;
        });
        assert_eq!(taken.status, 429);
        assert_eq!(taken.header("retry-after"), Some(seconds.to_string().as_str()));
    }
    let taken = first(|faults| {
        faults.retry_after.share = 1.0;
        faults.retry_after.seconds = 120;
        faults.retry_after.as_date = true;
    });
    let hint = taken.header("retry-after").unwrap();
    assert!(hint.starts_with("Thu, 15 Oct 2026 15:02:0") && hint.ends_with(" GMT"), "{hint}");
}

#[test]
fn server_errors_have_three_messages() {
    let world = world_with(|faults| faults.server_error = 1.0);
    let mut messages: Vec<String> = (0..60)
        .map(|_| get(&world, &contratos(1)))
        .inspect(|taken| assert_eq!(taken.status, 500))
        .map(|taken| taken.json()["message"].as_str().unwrap().to_owned())
        .collect();
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len(), 3, "{messages:?}");
}

#[test]
fn gateways_fail_in_three_ways() {
    let world = world_with(|faults| faults.gateway = 1.0);
    let mut seen: Vec<u16> = (0..60).map(|_| get(&world, &contratos(1)).status).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [502, 503, 504]);
    assert!(get(&world, &contratos(1)).text.starts_with("<html>"));
}

#[test]
fn right_requests_are_refused_for_a_moment() {
    let taken = first(|faults| faults.input_string = 1.0);
    assert_eq!(
        (taken.status, taken.json()["message"].as_str()),
        (400, Some("For input string: \"\""))
    );
    let taken = first(|faults| faults.dates = 1.0);
    assert_eq!(
        (taken.status, taken.json()["message"].as_str()),
        (422, Some("Data Inicial inválida"))
    );
}

#[test]
fn connections_hang_and_reset() {
    let world = world_with(|faults| {
        faults.hang.share = 1.0;
        faults.hang.at_most_ms = 9000;
    });
    let answer = world.answer(&Request::get(&contratos(1)));
    assert_eq!((answer.ending, answer.delay.as_secs()), (Ending::Hang, 9));
    assert_eq!(first(|faults| faults.reset = 1.0).ending, Ending::Reset);
}

#[test]
fn bodies_break_off_with_and_without_a_length() {
    let whole = get(&world(), &contratos(1)).text;
    let chunks = first(|faults| faults.cut_chunks = 1.0);
    assert_eq!((chunks.status, chunks.ending), (200, Ending::Cut));
    assert_eq!(chunks.header("content-length"), None);
    let length = first(|faults| faults.cut_length = 1.0);
    assert_eq!(length.ending, Ending::Cut);
    assert_eq!(length.header("content-length").unwrap(), whole.len().to_string());
    assert_eq!(length.text.len(), whole.len() / 2);
}

#[test]
fn success_is_html_or_nothing_or_half() {
    let html = first(|faults| faults.html = 1.0);
    assert_eq!((html.status, html.ending), (200, Ending::Whole));
    assert!(html.text.starts_with("<html>"));
    let zero = first(|faults| faults.zero_length = 1.0);
    assert_eq!(
        (zero.status, zero.text.as_str(), zero.header("content-length")),
        (200, "", Some("0"))
    );
    let half = first(|faults| faults.wrong_json = 1.0);
    assert_eq!((half.status, half.ending), (200, Ending::Whole));
    assert!(
        half.text.starts_with("{\"data\":[{")
            && serde_json::from_str::<serde_json::Value>(&half.text).is_err()
    );
}

#[test]
fn plans_are_not_hidden_by_a_fault_that_looks_like_none() {
    let world = world_with(|faults| faults.zero_length = 1.0);
    let plans = get(&world, "/v1/pca/atualizacao?dataInicio=20260601&dataFim=20260608&pagina=1");
    assert!(plans.json()["totalRegistros"].as_u64().unwrap() > 0);
}

#[test]
fn a_huge_body_is_as_long_as_told_and_still_json() {
    let world = world_with(|faults| {
        faults.huge.share = 1.0;
        faults.huge.bytes = 1_000_000;
    });
    let taken = get(&world, &contratos(1));
    assert_eq!(taken.text.len(), 1_000_000);
    assert_eq!(taken.json()["totalRegistros"], 1);
    let pieces = Body::filler(200 * 1024 * 1024);
    assert_eq!(pieces.map(|piece| piece.len() as u64).sum::<u64>(), 200 * 1024 * 1024);
}

#[test]
fn a_total_can_be_a_billion() {
    let taken = first(|faults| faults.huge_total = 1.0);
    let json = taken.json();
    assert_eq!(json["totalRegistros"], 1_000_000_000);
    assert_eq!(json["totalPaginas"], 20_000_000);
    assert_eq!(json["data"].as_array().unwrap().len(), 50);
}

#[test]
fn deep_pages_are_slower() {
    let world = world_with(|faults| {
        faults.latency = Latency { fixed_ms: 100, jitter_ms: 50, per_hundred_pages_ms: 1000 };
    });
    let delay = |page| world.answer(&Request::get(&contratos(page))).delay.as_millis();
    assert!((100..150).contains(&delay(1)));
    assert!((300..350).contains(&delay(21)));
    let again = delay(1);
    assert!((0..20).any(|_| delay(1) != again), "jitter");
}

#[test]
fn shares_are_kept_and_the_sequence_is_that_of_the_seed() {
    let all = |faults: &mut Faults| {
        faults.too_many = 0.1;
        faults.server_error = 0.1;
        faults.reset = 0.1;
        faults.wrong_json = 0.1;
    };
    let run = |world: World| -> Vec<(u16, Ending, String)> {
        (0..1000)
            .map(|_| get(&world, &contratos(1)))
            .map(|taken| (taken.status, taken.ending, taken.text))
            .collect()
    };
    let first = run(world_with(all));
    let count = |status| first.iter().filter(|(seen, ..)| *seen == status).count();
    for status in [429, 500, 0] {
        assert!((60..140).contains(&count(status)), "{status}: {}", count(status));
    }
    // The times in the errors follow the clock; nothing else may differ.
    let shape = |run: &[(u16, Ending, String)]| -> Vec<(u16, Ending, usize)> {
        run.iter().map(|(status, ending, text)| (*status, *ending, text.len())).collect()
    };
    assert_eq!(shape(&first), shape(&run(world_with(all))));
    let other = World::new(lavra_world::WorldConfig { seed: 99, ..config() });
    other.set_faults(world_with(all).faults()).unwrap();
    assert_ne!(shape(&first), shape(&run(other)));
}

#[test]
fn impossible_switches_are_refused_and_change_nothing() {
    let world = world();
    for wrong in [
        Faults { too_many: 1.5, ..Faults::default() },
        Faults { reset: f64::NAN, ..Faults::default() },
        Faults { too_many: 0.6, html: 0.6, ..Faults::default() },
    ] {
        assert!(world.set_faults(wrong).is_err());
    }
    assert_eq!(take(world.answer(&Request::get(&contratos(1)))).status, 200);
}
