//! What was asked and served is known afterwards.

use lavra_world::Request;

use crate::support::{contratos, get, world};

#[test]
fn requests_are_counted_by_list_and_status_and_pages_by_themselves() {
    let world = world();
    for page in [1, 2, 2, 3] {
        assert_eq!(get(&world, &contratos(page)).status, 200);
    }
    get(&world, "/v1/contratos");
    get(&world, "/v1/orgaos/1/compras/2024/1");
    get(&world, "/somewhere");
    let stats = world.stats();
    assert_eq!(stats.requests, 7);
    assert_eq!(stats.by_endpoint["/v1/contratos"], 5);
    assert_eq!(stats.by_endpoint["/v1/orgaos"], 1);
    assert_eq!(stats.by_endpoint["elsewhere"], 1);
    assert_eq!((stats.by_status["200"], stats.by_status["400"], stats.by_status["404"]), (4, 1, 2));
    assert_eq!(stats.whole_pages, 4);
    let times: Vec<(u64, u64)> = stats.pages.iter().map(|page| (page.page, page.times)).collect();
    assert_eq!(times, [(1, 1), (2, 2), (3, 1)]);
    let twice: Vec<u64> = stats.repeated().map(|page| page.page).collect();
    assert_eq!(twice, [2]);
    assert_eq!(stats.pages[0].window, "20240701..20240731");
    assert_eq!(stats.pages[0].endpoint, "/v1/contratos");
}

#[test]
fn a_page_that_did_not_arrive_was_not_served() {
    let world = world();
    let answer = world.answer(&Request::get(&contratos(1)));
    assert_eq!(world.stats().in_flight, 1);
    drop(answer);
    let stats = world.stats();
    assert_eq!((stats.in_flight, stats.whole_pages, stats.requests), (0, 0, 1));
}

#[test]
fn other_windows_sizes_modalidades_and_filters_are_other_pages() {
    let world = world();
    for more in ["&tamanhoPagina=10", "&tamanhoPagina=20", "&uf=SP", "&uf=SC"] {
        let target = format!(
            "/v1/contratacoes/publicacao?dataInicial=20240701&dataFinal=20240731\
             &codigoModalidadeContratacao=8&pagina=1{more}"
        );
        assert_eq!(get(&world, &target).status, 200, "{more}");
    }
    let stats = world.stats();
    assert_eq!(stats.pages.len(), 4, "{stats:?}");
    assert_eq!(stats.repeated().count(), 0);
}
