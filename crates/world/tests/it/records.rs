//! Records look like the real ones.

use lavra_world::{Endpoint, World, WorldConfig};
use serde_json::Value;

use crate::support::{config, days, get, windows, world};

/// The mean length of a record on the wire, against the real ones.
#[test]
fn records_are_about_as_long_as_the_real_ones() {
    let world = World::new(WorldConfig { scale: 0.05, ..config() });
    for (endpoint, _, query) in windows() {
        let size = endpoint.page_cap();
        let target = format!("{endpoint}?{query}&pagina=1&tamanhoPagina={size}");
        let taken = get(&world, &target);
        let total = taken.json()["totalRegistros"].as_u64().unwrap();
        let mean = taken.text.len() as u64 / size.min(total);
        let expected = match endpoint {
            Endpoint::Contratos | Endpoint::ContratosAtualizacao => 1380..1620,
            Endpoint::ContratacoesPublicacao
            | Endpoint::ContratacoesAtualizacao
            | Endpoint::ContratacoesProposta => 1680..1880,
            Endpoint::Atas | Endpoint::AtasAtualizacao => 880..1050,
            Endpoint::InstrumentosCobranca => 4400..5200,
            Endpoint::PcaAtualizacao | Endpoint::Pca | Endpoint::PcaUsuario => 600..900,
        };
        assert!(expected.contains(&mean), "{endpoint}: {mean} for {expected:?}");
    }
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn records_have_the_fields_of_the_real_ones() {
    let world = world();
    let first = |endpoint: Endpoint| {
        let fan = (endpoint == Endpoint::ContratacoesPublicacao).then_some(6);
        let (from, to) = days(endpoint);
        world.truth(endpoint, fan, from, to).record(0).unwrap()
    };
    let contrato = first(Endpoint::Contratos);
    assert_eq!(
        names(&contrato),
        [
            "anoContrato",
            "categoriaProcesso",
            "codigoPaisFornecedor",
            "dataAssinatura",
            "dataAtualizacao",
            "dataAtualizacaoGlobal",
            "dataPublicacaoPncp",
            "dataVigenciaFim",
            "dataVigenciaInicio",
            "identificadorCipi",
            "informacaoComplementar",
            "niFornecedor",
            "niFornecedorSubContratado",
            "nomeFornecedorSubContratado",
            "nomeRazaoSocialFornecedor",
            "numeroContratoEmpenho",
            "numeroControlePNCP",
            "numeroControlePncpCompra",
            "numeroParcelas",
            "numeroRetificacao",
            "objetoContrato",
            "orgaoEntidade",
            "orgaoSubRogado",
            "processo",
            "receita",
            "sequencialContrato",
            "tipoContrato",
            "tipoPessoa",
            "tipoPessoaSubContratada",
            "unidadeOrgao",
            "unidadeSubRogada",
            "urlCipi",
            "usuarioNome",
            "valorAcumulado",
            "valorGlobal",
            "valorInicial",
            "valorParcela",
        ]
    );
    assert!(contrato["dataPublicacaoPncp"].as_str().unwrap().starts_with("2024-07-01T"));
    let contratacao = first(Endpoint::ContratacoesPublicacao);
    assert_eq!(names(&contratacao).len(), 34);
    assert_eq!(contratacao["modalidadeId"], 6);
    assert!(contratacao["situacaoCompraId"].is_u64());
    let ata = first(Endpoint::AtasAtualizacao);
    assert_eq!(names(&ata).len(), 23);
    let bill = first(Endpoint::InstrumentosCobranca);
    assert_eq!(names(&bill).len(), 17);
    assert_eq!(names(&bill["recuperarContratoDTO"]), names(&contrato));
    let note: Value = serde_json::from_str(bill["jsonResponseNFe"].as_str().unwrap()).unwrap();
    assert_eq!(
        note["notaFiscalDTO"]["valorNotaFiscal"],
        bill["notaFiscalEletronica"]["valorNotaFiscal"]
    );
    let plan = first(Endpoint::PcaAtualizacao);
    assert_eq!(names(&plan).len(), 9);
    assert_eq!(names(&plan["itens"][0]).len(), 21);
}

#[test]
fn amounts_have_four_decimals_on_the_wire_and_texts_their_accents() {
    let world = world();
    let text = get(&world, "/v1/contratos?dataInicial=20240701&dataFinal=20240731&pagina=1").text;
    let amount = text.split("\"valorInicial\":").nth(1).unwrap();
    let amount = &amount[..amount.find([',', '}']).unwrap()];
    let (whole, decimals) = amount.split_once('.').unwrap();
    assert!(whole.parse::<u64>().is_ok() && decimals.len() == 4, "{amount}");
    assert!(text.contains("ção"));
}

#[test]
fn two_contracts_in_five_are_commitments() {
    let world = world();
    let text = get(&world, "/v1/contratos?dataInicial=20240701&dataFinal=20240731&pagina=1").text;
    let share = text.matches("\"Empenho\"").count() as f64 / 500.0;
    assert!((0.3..0.5).contains(&share), "{share}");
}

#[test]
fn a_page_of_plans_counts_items_and_cuts_plans_in_two() {
    let world = world();
    let page = |page: u64| {
        let target = format!(
            "/v1/pca/?anoPca=2025&codigoClassificacaoSuperior=7060&pagina={page}&tamanhoPagina=50"
        );
        get(&world, &target).json()
    };
    let (first, second) = (page(1), page(2));
    let items = |page: &Value| -> usize {
        let plans = page["data"].as_array().unwrap();
        plans.iter().map(|plan| plan["itens"].as_array().unwrap().len()).sum()
    };
    assert_eq!((items(&first), items(&second)), (50, 50));
    assert_eq!(first["data"].as_array().unwrap().len(), 2);
    let last = first["data"].as_array().unwrap().last().unwrap();
    assert_eq!(last["idPcaPncp"], second["data"][0]["idPcaPncp"]);
    assert_eq!(last["itens"][0]["classificacaoSuperiorCodigo"], "7060");
}
