//! A world of an exact size.

use clap::Parser;
use lavra_world::{Endpoint, Fixed, World, WorldArgs, WorldConfig};

use crate::support::{config, date, get, read_all};

const LIST: &str = "/v1/contratacoes/publicacao?dataInicial=20240701&dataFinal=20240731\
                    &codigoModalidadeContratacao=6&tamanhoPagina=50";

#[test]
fn it_has_exactly_the_pages_of_about_the_length_that_was_asked_for() {
    for page_bytes in [80_000, 87_000, 500_000] {
        let fixed = Fixed { pages: 40, page_bytes, ..Fixed::default() };
        let world = World::new(WorldConfig { fixed: Some(fixed), ..config() });
        for page in [1, 17, 40] {
            let taken = get(&world, &format!("{LIST}&pagina={page}"));
            assert_eq!(taken.json()["totalPaginas"], 40);
            let ratio = taken.text.len() as f64 / page_bytes as f64;
            assert!((0.93..1.07).contains(&ratio), "{} for {page_bytes}", taken.text.len());
        }
        assert_eq!(get(&world, &format!("{LIST}&pagina=41")).status, 400);
        let other = "/v1/contratos?dataInicial=20240701&dataFinal=20240731&pagina=1";
        assert_eq!(get(&world, other).status, 204);
        let truth = world.truth(
            Endpoint::ContratacoesPublicacao,
            Some(6),
            date("20240701"),
            date("20240731"),
        );
        let query = LIST.split_once('?').unwrap().1.rsplit_once('&').unwrap().0;
        let read = read_all(&world, Endpoint::ContratacoesPublicacao, query, 50);
        assert!(truth.entries().eq(read));
    }
}

#[test]
fn lists_without_modalidades_can_be_fixed_too() {
    let endpoint = Endpoint::Contratos;
    let fixed =
        Fixed { endpoint, pages: 3, page_size: 500, page_bytes: 900_000, ..Fixed::default() };
    let world = World::new(WorldConfig { fixed: Some(fixed), ..config() });
    let taken = get(&world, "/v1/contratos?dataInicial=20240701&dataFinal=20240731&pagina=3");
    assert_eq!(taken.json()["totalRegistros"], 1500);
    assert!((850_000..950_000).contains(&taken.text.len()), "{}", taken.text.len());
}

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    world: WorldArgs,
}

#[test]
fn flags_make_it_too() {
    let parse = |args: &[&str]| Command::try_parse_from(["world"].iter().chain(args));
    let args = parse(&["--pages", "12", "--page-bytes", "70000", "--fault", "latency.fixed_ms=3"]);
    let world = args.unwrap().world.world().unwrap();
    assert_eq!(get(&world, &format!("{LIST}&pagina=1")).json()["totalPaginas"], 12);
    assert_eq!(world.faults().latency.fixed_ms, 3);
    let now = parse(&["--seed", "3", "--scale", "0.5", "--now", "2025-01-02T00:00:00Z"]).unwrap();
    // Midnight in London is the evening before in Brasília.
    assert_eq!(now.world.world().unwrap().today(), date("20250101"));
    assert!(parse(&["--page-bytes", "1"]).is_err());
    assert!(parse(&["--fault", "nonsense=1"]).unwrap().world.world().is_err());
}
