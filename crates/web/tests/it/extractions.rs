//! Sources, their plans, and what is stored of them.

use std::time::Duration;

use jiff::civil::date;
use lavra_extract::machine::{self, Happening};
use lavra_extract::model::{ExtractionId, Totals, Window};
use lavra_extract::store::{Arrival, Change, Done, Held, Outcome, Planned, Write};
use lavra_tasks::model::ProcessId;
use reqwest::Method;
use serde_json::json;

use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    the_plan_of_a_source_is_shown_as_far_as_it_is_asked_for,
    a_task_is_shown_with_its_pages_and_what_is_missing,
    a_plan_is_told_before_it_is_made,
    an_order_makes_the_task_of_its_type,
);

pub(crate) async fn planned(server: &Server) -> std::sync::Arc<dyn lavra_extract::store::Store> {
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
    store
}

async fn the_plan_of_a_source_is_shown_as_far_as_it_is_asked_for(place: Place) {
    let server = Server::on(place).await;
    server.get("/extractions/pncp").await.problem(404, "source_not_found");
    server.get("/extractions/a'b").await.problem(404, "source_not_found");

    planned(&server).await;
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

    let first = server.get("/extractions/pncp?limit=4").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/extractions/pncp?cursor={cursor}")).await.expect(200);
    let both = [&first, &rest].map(|page| page["items"].as_array().unwrap().clone()).concat();
    assert_eq!((&json!(both), &rest["next_cursor"]), (&all["items"], &json!(null)));
    server.get("/extractions/pncp?cursor=x").await.problem(400, "bad_query");
    let none = server.get("/extractions/pncp?status=FAILED").await.expect(200);
    assert_eq!(none["items"], json!([]));

    let grid = server.get("/extractions/pncp/grid?from=2024-02&to=2024-02").await.expect(200);
    let month = json!({
        "month": "2024-02", "task_id": "atas_atualizacao_2024-02-01", "status": "PENDING",
        "records": 0, "percent": 0,
    });
    let row = json!({ "endpoint": "atas_atualizacao", "months": [month] });
    assert_eq!((grid["rows"].as_array().unwrap().len(), &grid["rows"][0]), (2, &row));
    let sources = server.get("/sources").await.expect(200);
    let [source] = sources["items"].as_array().unwrap().as_slice() else { panic!("{sources}") };
    assert_eq!((&source["name"], &source["is_built_in"]), (&json!("pncp"), &json!(true)));
    assert_eq!(source["tasks"], json!([{ "status": "PENDING", "count": 6 }]));
}

async fn a_task_is_shown_with_its_pages_and_what_is_missing(place: Place) {
    let server = Server::on(place).await;
    let store = planned(&server).await;
    let id = ExtractionId::new("contratos_publicacao", date(2024, 1, 1));
    let task = store.task(&id).await.unwrap().unwrap();
    let next = |task, happening| machine::next(task, happening, store.clock().now()).unwrap();
    let by = ProcessId(store.clock().new_id());
    let change = |next, totals, windows| Change {
        next,
        held: Held::Claimed { by, begun: true },
        totals,
        windows,
        missing: None,
    };
    let claim = change(next(&task, Happening::ClaimedToDiscover), None, None);
    let claim = Write { task: id.clone(), token: 0, change: Some(claim), arrivals: Vec::new() };
    store.write(vec![claim]).await.unwrap();
    let task = store.task(&id).await.unwrap().unwrap();
    let totals = Totals::of(25, 10);
    let window = Window {
        number: 1,
        first_day: date(2024, 1, 1),
        last_day: date(2024, 1, 31),
        base: 0,
        totals: Some(totals),
    };
    let found = next(&task, Happening::Discovered { is_over: true });
    let found = change(found, Some(totals), Some(vec![window]));
    let pages = [(1, 200), (3, 500)].map(|(page, code)| Arrival {
        id: store.clock().new_id(),
        at: store.clock().now(),
        url: "http://127.0.0.1/v1/contratos".into(),
        endpoint_name: task.endpoint_name.clone(),
        data_date: task.data_date,
        run: "a run".into(),
        parameters: "{}".into(),
        code,
        headers: "{}".into(),
        body: Some("{}".into()),
        current_page: page,
        page,
        page_size: 10,
        total_records: Some(25),
        total_pages: Some(3),
        elapsed: Duration::from_millis(7),
        outcome: if code == 200 {
            Outcome::Done(Done {
                records: 10,
                total_records: 25,
                generation: 1,
                body_hash: "b".into(),
                content_hash: "c".into(),
            })
        } else {
            Outcome::Failed { error: "status 500".into() }
        },
    });
    let token = task.token;
    let found = Write { task: id, token, change: Some(found), arrivals: pages.to_vec() };
    store.write(vec![found]).await.unwrap();

    let path = "/extractions/pncp/tasks/contratos_publicacao_2024-01-01";
    let shown = server.get(path).await.expect(200);
    assert_eq!((&shown["status"], &shown["missing"]), (&json!("FETCHING"), &json!(2)));
    assert_eq!(shown["missing_pages"], json!([{ "first": 2, "last": 3 }]));
    assert_eq!(shown["windows"][0]["last_day"], "2024-01-31");
    let pages = server.get(&format!("{path}/pages")).await.expect(200);
    let outcomes: Vec<_> = pages["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|page| (page["page"].as_i64().unwrap(), page["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(outcomes, [(1, "data"), (2, "missing"), (3, "failed")]);
    assert_eq!(
        (&pages["items"][0]["records"], &pages["items"][0]["bytes"]),
        (&json!(10), &json!(2))
    );
    assert_eq!(pages["items"][2]["failure"]["response_code"], 500);
    let missing = server.get(&format!("{path}/pages?missing=true&limit=1")).await.expect(200);
    assert_eq!((&missing["items"][0]["page"], &missing["next_cursor"]), (&json!(2), &json!("2")));
    let last = server.get(&format!("{path}/pages?missing=true&cursor=2")).await.expect(200);
    assert_eq!((&last["items"][0]["page"], &last["next_cursor"]), (&json!(3), &json!(null)));
    server.get("/extractions/pncp/tasks/nobody").await.problem(404, "extraction_not_found");
    server.get("/extractions/pncp/tasks/nobody/pages").await.problem(404, "extraction_not_found");
    server.get("/extractions/shop/tasks/nobody").await.problem(404, "source_not_found");
}

async fn a_plan_is_told_before_it_is_made(place: Place) {
    let server = Server::on(place).await;
    let order =
        json!({ "from": "2024-01", "to": "2024-04", "endpoints": ["contratos_publicacao"] });
    let plan = server.post("/extractions/pncp:plan", &order).await.expect(200);
    assert_eq!((&plan["total"], &plan["new"]), (&json!(4), &json!(4)), "{plan}");
    assert_eq!(
        (&plan["requests_at_least"], &plan["tasks"][0]["page_size"]),
        (&json!(4), &json!(500))
    );
    server.get("/extractions/pncp").await.problem(404, "source_not_found");
    planned(&server).await;
    let plan = server.post("/extractions/pncp:plan", &order).await.expect(200);
    assert_eq!((&plan["total"], &plan["new"]), (&json!(4), &json!(1)));
    assert_eq!(plan["tasks"][0]["status"], "PENDING");
    for (order, says) in [
        (json!({ "from": "2024-03", "to": "2024-01" }), "ends before it begins"),
        (json!({ "from": "2024-01", "to": "2024-01", "endpoints": ["x"] }), "no endpoint"),
        (json!({ "from": "2024-01", "to": "2024-01", "definition": "name =" }), "line 1"),
        (json!({ "from": "2024-13", "to": "2024-01" }), "no month"),
    ] {
        let problem = server.post("/extractions/pncp:plan", &order).await;
        let problem = problem.problem(422, "invalid_request");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    }
    server.post("/extractions/shop:plan", &order).await.problem(404, "source_not_found");
}

async fn an_order_makes_the_task_of_its_type(place: Place) {
    let server = Server::on(place).await;
    let kinds = ["extract", "extract_audit", "extract_export"].map(str::to_owned);
    server.tasks.declare(kinds.to_vec()).await.unwrap();
    let months = json!({ "from": "2024-01", "to": "2024-02" });
    let export = json!({ "format": "json_lines", "out": "pncp/2024" });
    for (verb, order, kind) in [
        ("run", &months, "extract"),
        ("retry", &json!({}), "extract"),
        ("audit", &json!({ "repair": true }), "extract_audit"),
        ("export", &export, "extract_export"),
    ] {
        let path = format!("/extractions/pncp:{verb}");
        let keyed =
            || server.request(Method::POST, &path).header("idempotency-key", verb).json(order);
        let first = server.send(keyed()).await;
        let task = first.expect(201);
        assert_eq!((&task["type"], &task["status"]), (&json!(kind), &json!("PENDING")));
        let place = format!("/tasks/{}", task["id"].as_str().unwrap());
        assert_eq!(first.header("location"), Some(place.as_str()));
        assert_eq!(server.send(keyed()).await.expect(200)["id"], task["id"]);
        let input = server.get(&format!("{place}/input")).await.expect(200);
        assert_eq!(input["payload"]["source"], "pncp");
        server
            .post(&format!("/extractions/shop:{verb}"), order)
            .await
            .problem(404, "source_not_found");
    }
    let outside = json!({ "format": "csv", "out": "../etc" });
    let problem = server.post("/extractions/pncp:export", &outside).await;
    problem.problem(422, "invalid_request");
    let late = json!({ "from": "2999-01", "to": "2999-02" });
    server.post("/extractions/pncp:run", &late).await.problem(422, "invalid_request");
}
