//! Whatever is asked, there is an answer.

use std::sync::LazyLock;

use lavra_world::{Endpoint, Request, World};
use proptest::prelude::*;

use crate::support::{take, world};

static WORLD: LazyLock<World> = LazyLock::new(world);

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9]{1,12}",
        "-?[0-9]{1,20}",
        "(19|20|99)[0-9]{2}[01][0-9][0-3][0-9]",
        "%[0-9a-fA-F]{0,2}",
        Just("20240701".to_owned()),
        Just("2024-07-01".to_owned()),
    ]
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "dataInicial",
        "dataFinal",
        "dataInicio",
        "dataFim",
        "pagina",
        "tamanhoPagina",
        "anoPca",
        "codigoModalidadeContratacao",
        "codigoClassificacaoSuperior",
        "idUsuario",
        "cnpj",
        "uf",
        "usuarioId",
        "codigoUnidade",
        "codigoUnidadeAdministrativa",
        "codigoModoDisputa",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_query_makes_it_panic(
        endpoint in prop::sample::select(Endpoint::ALL.to_vec()),
        pairs in prop::collection::vec((name(), value()), 0..10),
        tail in any::<String>(),
    ) {
        let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let query = format!("{}&{tail}", query.join("&"));
        let taken = take(WORLD.answer(&Request { method: "GET", path: endpoint.path(), query: &query }));
        prop_assert!([200, 204, 400, 404, 422].contains(&taken.status), "{query}: {taken:?}");
    }

    #[test]
    fn no_path_makes_it_panic(
        path in any::<String>(), cnpj in "[0-9]{0,14}", year in value(), number in value(),
    ) {
        let single = format!("/v1/orgaos/{cnpj}/compras/{year}/{number}");
        for path in [path, single] {
            let taken = take(WORLD.answer(&Request { method: "GET", path: &path, query: "" }));
            prop_assert!(taken.status >= 400, "{path}: {taken:?}");
        }
    }
}
