//! What the API gives to those who ask rightly.

use lavra_world::Endpoint;

use crate::support::{contratos, date, get, windows, world};

#[test]
fn a_page_has_the_envelope_and_the_recorded_headers() {
    let taken = get(&world(), &contratos(2));
    assert_eq!(taken.status, 200);
    let json = taken.json();
    let total = json["totalRegistros"].as_u64().unwrap();
    assert_eq!(json["totalPaginas"], total.div_ceil(50));
    assert_eq!(json["numeroPagina"], 2);
    assert_eq!(json["paginasRestantes"], total.div_ceil(50) - 2);
    assert_eq!(json["empty"], false);
    assert_eq!(json["data"].as_array().unwrap().len(), 50);
    assert_eq!(json.as_object().unwrap().len(), 6);
    assert_eq!(taken.header("content-type"), Some("application/json"));
    assert_eq!(taken.header("x-frame-options"), Some("DENY"));
    assert_eq!(taken.header("strict-transport-security"), Some("max-age=15768000"));
    for none in ["etag", "last-modified", "retry-after", "content-length"] {
        assert_eq!(taken.header(none), None, "{none}");
    }
}

#[test]
fn the_usual_page_size_is_each_lists_own() {
    let world = world();
    for (endpoint, _, query) in windows() {
        let json = get(&world, &format!("{endpoint}?{query}&pagina=1")).json();
        let total = json["totalRegistros"].as_u64().unwrap();
        let usual = match endpoint.page_cap() {
            500 => 500,
            _ => 10,
        };
        assert_eq!(json["totalPaginas"], total.div_ceil(usual), "{endpoint}");
    }
}

#[test]
fn the_public_base_leads_to_the_same_lists() {
    let (plain, based) = (contratos(1), format!("/api/consulta{}", contratos(1)));
    let world = world();
    assert_eq!(get(&world, &plain).json(), get(&world, &based).json());
}

#[test]
fn each_list_has_its_own_way_to_be_empty() {
    let world = world();
    let future = "dataInicial=20300101&dataFinal=20300101&pagina=1";
    let modality = "dataInicial=20240701&dataFinal=20240731&pagina=1&codigoModalidadeContratacao";
    for target in [
        format!("/v1/contratos?{future}"),
        format!("/v1/contratos/atualizacao?{future}"),
        format!("/v1/atas/atualizacao?{future}"),
        format!("/v1/contratacoes/publicacao?{modality}=2"),
        format!("/v1/contratacoes/publicacao?{modality}=19"),
        format!("/v1/contratacoes/publicacao?{modality}=-1"),
        format!("/v1/contratacoes/atualizacao?{modality}=123456789012"),
        "/v1/contratos?dataInicial=20210101&dataFinal=20210731&pagina=3".into(),
    ] {
        let taken = get(&world, &target);
        assert_eq!((taken.status, taken.text.as_str()), (204, ""), "{target}");
        assert_eq!(taken.header("content-type"), Some("application/json"));
    }
    let taken = get(&world, &format!("/v1/instrumentoscobranca/inclusao?{future}"));
    assert_eq!(taken.status, 404);
    let json = taken.json();
    assert_eq!(json["message"], "Nenhum instrumento de Cobrança encontrado.");
    assert_eq!(json["status"], 404);
    assert_eq!(json["path"], "/pncp-consulta/v1/instrumentoscobranca/inclusao");
    assert!(json["timestamp"].as_str().unwrap().ends_with("+00:00"), "{json}");
    for target in [
        "/v1/pca/atualizacao?dataInicio=20300101&dataFim=20300110&pagina=1",
        "/v1/pca/?anoPca=2025&codigoClassificacaoSuperior=nenhuma&pagina=1",
        "/v1/pca/usuario?anoPca=1999&idUsuario=12&pagina=1",
    ] {
        let taken = get(&world, target);
        assert_eq!((taken.status, taken.text.as_str()), (200, ""), "{target}");
        assert_eq!(taken.header("content-length"), Some("0"));
    }
}

#[test]
fn the_last_day_of_a_window_counts_except_for_plans() {
    let world = world();
    let day = get(&world, "/v1/contratos?dataInicial=20240703&dataFinal=20240703&pagina=1").json();
    let truth = world.truth(Endpoint::Contratos, None, date("20240703"), date("20240703"));
    assert_eq!(day["totalRegistros"], truth.total());
    let plans =
        |to| get(&world, &format!("/v1/pca/atualizacao?dataInicio=20260603&dataFim={to}&pagina=1"));
    assert_eq!(plans("20260603").text, "");
    assert!(plans("20260604").json()["totalRegistros"].as_u64().unwrap() > 0);
}

#[test]
fn optional_parameters_keep_only_what_they_name() {
    let world = world();
    let base = "/v1/contratacoes/publicacao?dataInicial=20240701&dataFinal=20240731\
                &codigoModalidadeContratacao=8&pagina=1&tamanhoPagina=50";
    let all = get(&world, base).json();
    let record = &all["data"][7];
    for (name, value, pointer) in [
        ("cnpj", &record["orgaoEntidade"]["cnpj"], "/orgaoEntidade/cnpj"),
        ("uf", &record["unidadeOrgao"]["ufSigla"], "/unidadeOrgao/ufSigla"),
        ("codigoMunicipioIbge", &record["unidadeOrgao"]["codigoIbge"], "/unidadeOrgao/codigoIbge"),
        (
            "codigoUnidadeAdministrativa",
            &record["unidadeOrgao"]["codigoUnidade"],
            "/unidadeOrgao/codigoUnidade",
        ),
        ("codigoModoDisputa", &record["modoDisputaId"], "/modoDisputaId"),
    ] {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let some = get(&world, &format!("{base}&{name}={text}")).json();
        let kept = some["data"].as_array().unwrap();
        assert!(some["totalRegistros"].as_u64() < all["totalRegistros"].as_u64(), "{name}");
        assert!(kept.iter().all(|record| record.pointer(pointer) == Some(value)), "{name}");
        assert!(kept.iter().any(|kept| kept == record) || kept.len() == 50, "{name}");
    }
    assert_eq!(get(&world, &format!("{base}&uf=XX")).status, 204);
    let system =
        get(&world, "/v1/contratos?dataInicial=20240701&dataFinal=20240731&pagina=1&usuarioId=21");
    let system = system.json();
    let named =
        |record: &serde_json::Value| record["usuarioNome"] == "LicitaExemplo Tecnologia e Gestão";
    assert!(system["data"].as_array().unwrap().iter().all(named));
}

#[test]
fn open_proposals_may_be_asked_for_all_modalidades_at_once() {
    let world = world();
    let total = |more: &str| {
        let target = format!("/v1/contratacoes/proposta?dataFinal=20270115&pagina=1{more}");
        let taken = get(&world, &target);
        if taken.status == 204 { 0 } else { taken.json()["totalRegistros"].as_u64().unwrap() }
    };
    let each: u64 =
        (1..=14).map(|code| total(&format!("&codigoModalidadeContratacao={code}"))).sum();
    assert_eq!(total(""), each);
    assert!(each > 200);
}

#[test]
fn a_contratacao_of_a_list_is_found_by_its_key() {
    let world = world();
    let list = get(
        &world,
        "/v1/contratacoes/publicacao?dataInicial=20240701&dataFinal=20240731\
                            &codigoModalidadeContratacao=6&pagina=3&tamanhoPagina=50",
    )
    .json();
    for listed in list["data"].as_array().unwrap() {
        let (cnpj, year) =
            (listed["orgaoEntidade"]["cnpj"].as_str().unwrap(), &listed["anoCompra"]);
        let number = &listed["sequencialCompra"];
        let single = get(&world, &format!("/v1/orgaos/{cnpj}/compras/{year}/{number}"));
        assert_eq!(single.status, 200);
        let single = single.json();
        assert!(single["existeResultado"].is_boolean());
        for (name, value) in listed.as_object().unwrap() {
            assert_eq!(&single[name], value, "{name}");
        }
    }
    let record = &list["data"][0];
    let cnpj = record["orgaoEntidade"]["cnpj"].as_str().unwrap();
    for (cnpj, year, number, status) in [
        (cnpj, "2024", "999999", 404),
        (cnpj, "2020", "1", 404),
        ("00000000000000", "2024", "1", 404),
        (cnpj, "2024", "0", 400),
        (cnpj, "abc", "1", 400),
        (cnpj, "2024", "99999999999", 400),
    ] {
        let taken = get(&world, &format!("/v1/orgaos/{cnpj}/compras/{year}/{number}"));
        assert_eq!(taken.status, status, "{cnpj} {year} {number}");
    }
}
