//! GET /extractions/{source}.

use jiff::civil::date;
use lavra_extract::model::ExtractionId;
use lavra_extract::store::Planned;
use serde_json::json;

use crate::support::{Place, Server, on_each_engine};

on_each_engine!(the_plan_of_a_source_is_shown_as_far_as_it_is_asked_for);

async fn the_plan_of_a_source_is_shown_as_far_as_it_is_asked_for(place: Place) {
    let server = Server::on(place).await;
    server.get("/extractions/pncp").await.problem(404, "source_not_found");
    server.get("/extractions/a'b").await.problem(404, "source_not_found");

    lavra_db::migrate(&server.database, &lavra_extract::migrations("pncp")).await.unwrap();
    let planned = (1..=3).flat_map(|month| {
        ["contratos_publicacao", "atas_atualizacao"].map(|name| {
            let data_date = date(2024, month, 1);
            let task_id = ExtractionId::new(name, data_date);
            Planned { task_id, endpoint_name: name.into(), data_date }
        })
    });
    let store = lavra_extract::store_of(&server.database, "pncp");
    assert_eq!(store.plan(planned.collect()).await.unwrap(), 6);
    let all = server.get("/extractions/pncp").await.expect(200);
    assert_eq!(all["items"].as_array().unwrap().len(), 6);
    let first = &all["items"][0];
    assert_eq!(first["task_id"], "atas_atualizacao_2024-01-01");
    assert_eq!((&first["status"], &first["pages"]), (&json!("PENDING"), &json!(0)));

    let some = "/extractions/pncp?from=2024-02&to=2024-03&endpoint=contratos_publicacao";
    let some = server.get(some).await.expect(200);
    let dates: Vec<_> =
        some["items"].as_array().unwrap().iter().map(|item| item["data_date"].clone()).collect();
    assert_eq!(dates, ["2024-02-01", "2024-03-01"]);
    server.get("/extractions/pncp?from=02/2024").await.problem(400, "bad_query");
    server.get("/extractions/pncp?since=2024-02").await.problem(400, "bad_query");
}
