//! How the API refuses.

use lavra_world::Request;

use crate::support::{get, take, windows, world};

const JULY: &str = "dataInicial=20240701&dataFinal=20240731";

#[track_caller]
fn refused(target: &str, status: u16, message: &str) -> serde_json::Value {
    let taken = get(&world(), target);
    assert_eq!(taken.status, status, "{target}: {taken:?}");
    let json = taken.json();
    assert!(json["message"].as_str().unwrap().contains(message), "{target}: {json}");
    assert!(json["path"].as_str().unwrap().starts_with("/pncp-consulta/v1/"), "{json}");
    json
}

#[test]
fn a_page_larger_than_the_cap_is_refused_and_not_clamped() {
    let world = world();
    for (endpoint, _, query) in windows() {
        let cap = endpoint.page_cap();
        let ask = |size| get(&world, &format!("{endpoint}?{query}&pagina=1&tamanhoPagina={size}"));
        assert_eq!(ask(cap).status, 200, "{endpoint}");
        let over = ask(cap + 1);
        assert_eq!(over.status, 400, "{endpoint}");
        assert_eq!(over.json()["message"], "Tamanho de página inválido");
        let under = ask(9);
        assert_eq!(under.status, 400);
        let message = under.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("must be greater than or equal to 10"), "{message}");
    }
}

#[test]
fn each_required_parameter_is_missed() {
    let world = world();
    for (endpoint, _, query) in windows() {
        let whole = format!("{query}&pagina=1");
        assert_eq!(get(&world, &format!("{endpoint}?{whole}")).status, 200);
        let given: Vec<&str> = whole.split('&').collect();
        for left_out in &given {
            let name = left_out.split('=').next().unwrap();
            let rest: Vec<&str> = given.iter().copied().filter(|part| part != left_out).collect();
            for rest in [rest.join("&"), format!("{}&{name}=", rest.join("&"))] {
                let taken = get(&world, &format!("{endpoint}?{rest}"));
                assert_eq!(taken.status, 400, "{endpoint} without {name}: {taken:?}");
                let json = taken.json();
                assert!(json["message"].as_str().unwrap().contains(name), "{json}");
                assert_eq!(json["status"], 400);
            }
        }
    }
}

#[test]
fn dates_are_eight_digits_or_refused() {
    for wrong in ["2024-07-01", "01%2F07%2F2024", "20240732", "hoje", "2024070"] {
        refused(
            &format!("/v1/contratos?dataInicial={wrong}&dataFinal=20240731&pagina=1"),
            422,
            "Data Inicial inválida",
        );
        refused(
            &format!("/v1/atas?dataInicial=20240701&dataFinal={wrong}&pagina=1"),
            422,
            "Data Final inválida",
        );
    }
}

#[test]
fn a_dashed_date_silences_the_plans() {
    let world = world();
    let taken =
        get(&world, "/v1/pca/atualizacao?dataInicio=2026-06-01&dataFim=2026-06-08&pagina=1");
    assert_eq!((taken.status, taken.text.as_str()), (200, ""));
    let other = get(&world, "/v1/pca/atualizacao?dataInicio=ontem&dataFim=20260608&pagina=1");
    assert_eq!(other.status, 422);
}

#[test]
fn windows_are_no_longer_than_365_days_and_not_reversed() {
    let json = refused(
        "/v1/contratos?dataInicial=20230101&dataFinal=20240102&pagina=1",
        422,
        "Período inicial e final maior que 365 dias.",
    );
    assert_eq!(json["status"], "422");
    assert_eq!(json["error"], "422 UNPROCESSABLE_ENTITY");
    assert!(json["timestamp"].as_str().unwrap().ends_with("-03:00"), "{json}");
    assert_eq!(
        get(&world(), "/v1/contratos?dataInicial=20230101&dataFinal=20240101&pagina=1").status,
        200
    );
    refused(
        "/v1/contratos?dataInicial=20240731&dataFinal=20240701&pagina=1",
        422,
        "Data Inicial deve ser anterior ou igual à Data Final",
    );
    refused("/v1/pca/atualizacao?dataInicio=20240101&dataFim=20260608&pagina=1", 422, "365 dias");
}

#[test]
fn proposals_cannot_close_in_the_past() {
    refused(
        "/v1/contratacoes/proposta?dataFinal=20261014&pagina=1",
        422,
        "Data Final deve ser maior ou igual a data atual",
    );
    assert_eq!(get(&world(), "/v1/contratacoes/proposta?dataFinal=20261016&pagina=1").status, 200);
    assert_eq!(get(&world(), "/v1/contratacoes/proposta?dataFinal=99991231&pagina=1").status, 200);
}

#[test]
fn a_page_past_the_last_is_a_bad_request() {
    let world = world();
    for (endpoint, _, query) in windows() {
        for page in [100_000, i64::from(i32::MAX)] {
            let taken = get(&world, &format!("{endpoint}?{query}&pagina={page}"));
            assert_eq!(taken.status, 400, "{endpoint} {page}");
        }
    }
}

#[test]
fn numbers_must_be_numbers() {
    for wrong in ["um", "1.5", "99999999999"] {
        refused(&format!("/v1/contratos?{JULY}&pagina={wrong}"), 400, "For input string");
    }
    for wrong in ["0", "-1"] {
        refused(&format!("/v1/contratos?{JULY}&pagina={wrong}"), 400, "greater than or equal to 1");
    }
    refused(
        &format!("/v1/contratacoes/publicacao?{JULY}&pagina=1&codigoModalidadeContratacao=x"),
        400,
        "For input string",
    );
}

#[test]
fn a_unit_of_plans_needs_its_organ_and_texts_have_a_length() {
    refused(
        "/v1/pca/atualizacao?dataInicio=20260601&dataFim=20260608&pagina=1&codigoUnidade=1",
        422,
        "CNPJ",
    );
    let long = "9".repeat(101);
    refused(
        &format!("/v1/pca/?anoPca=2025&codigoClassificacaoSuperior={long}&pagina=1"),
        400,
        "size must be",
    );
    refused(
        &format!("/v1/atas?{JULY}&pagina=1&codigoUnidadeAdministrativa={long}"),
        400,
        "size must be",
    );
}

#[test]
fn there_is_nothing_else_and_only_get() {
    let world = world();
    for path in ["/", "/v1/pca", "/v1/contratos/", "/v1/", "/v2/contratos", "/api/consulta"] {
        assert_eq!(get(&world, path).status, 404, "{path}");
    }
    let request = Request { method: "POST", path: "/v1/contratos", query: JULY };
    assert_eq!(take(world.answer(&request)).status, 405);
}
