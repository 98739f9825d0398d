//! Extractions: the sources, the heat map, a task of the plan and its pages, and new runs.

use jiff::civil::date;
use lavra_db::Database;
use lavra_extract::model::ExtractionId;
use lavra_extract::store::Planned;
use lavra_web::access::Role;
use serde_json::json;

use crate::support::browser::{Browser, ODD, token};
use crate::support::{Place, Reply, Server, on_each_engine};

on_each_engine!(
    a_source_that_nobody_touched_says_what_to_do_next,
    the_heat_map_has_a_cell_for_each_endpoint_and_month,
    a_task_names_its_missing_pages_and_a_page_its_body,
    a_run_is_planned_and_then_started,
    a_source_of_one_s_own_is_run_from_its_definition,
    what_is_there_is_taken_up_refreshed_audited_and_exported,
    odd_addresses_and_odd_forms_are_no_fault_of_the_server,
);

const SOURCE: &str = "/ui/extractions/pncp";
const NEW: &str = "/ui/extractions/new";
const ORDER: &str = "/ui/extractions/pncp/order";
const TASK: &str = "contratos_publicacao_2024-01-01";

#[track_caller]
fn shows(page: &Reply, texts: &[&str]) {
    assert_eq!(page.status, 200, "{page:?}");
    for text in texts {
        assert!(page.text.contains(text), "{text:?} is not in {}", page.text);
    }
}

async fn types(server: &Server) {
    let kinds = ["extract", "extract_audit", "extract_export"].map(str::to_owned);
    server.tasks.declare(kinds.into()).await.unwrap();
}

async fn execute(server: &Server, sql: &str) {
    for sql in sql.split(";\n").filter(|sql| !sql.trim().is_empty()) {
        match &server.database {
            Database::Duck(duck) => {
                let sql = sql.to_owned();
                let run = move |tx: &lavra_db::duckdb::Connection| tx.execute_batch(&sql);
                duck.write("prepare a test", run).await.unwrap();
            }
            Database::Postgres(pg) => {
                pg.query("prepare a test", sql, &[]).await.unwrap();
            }
        }
    }
}

/// Three months of two endpoints; of one month two pages of three, one of them with a script in it.
pub(super) async fn furnished(place: Place) -> Server {
    let server = Server::on(place).await;
    types(&server).await;
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
    execute(&server, ROWS).await;
    server
}

const ROWS: &str = "
UPDATE psa.pncp_extraction_tasks
SET status = 'PARTIAL', total_pages = 3, total_records = 1205, verdict = 'short by 205',
    last_error = '1 page could not be had: <script>alert(1)</script>', discoveries = 3
WHERE task_id = 'contratos_publicacao_2024-01-01';
UPDATE psa.pncp_extraction_tasks
SET status = 'COMPLETE', total_pages = 4, total_records = 1999, verdict = 'exact', is_final = TRUE
WHERE task_id = 'atas_atualizacao_2024-02-01';
UPDATE psa.pncp_extraction_tasks SET status = 'FAILED', last_error = 'away'
WHERE task_id = 'atas_atualizacao_2024-03-01';
INSERT INTO psa.pncp_extraction_windows
    (task_id, number, first_day, last_day, base, total_pages, total_records)
VALUES ('contratos_publicacao_2024-01-01', 1, '2024-01-01', '2024-01-31', 0, 3, 1205);
INSERT INTO psa.pncp_raw_responses
    (id, endpoint_url, endpoint_name, response_code, response_content, data_date, page_size,
     task_id, page, outcome, elapsed_ms)
VALUES
    ('00000000-0000-7000-8000-000000000001', 'http://a', 'contratos_publicacao', 200,
     '{\"data\":[{\"objeto\":\"<script>alert(1)</script>\"}]}', '2024-01-01', 500,
     'contratos_publicacao_2024-01-01', 1, 'data', 5),
    ('00000000-0000-7000-8000-000000000003', 'http://a', 'contratos_publicacao', 200,
     '{\"data\":[]}', '2024-01-01', 500, 'contratos_publicacao_2024-01-01', 3, 'data', 5),
    ('00000000-0000-7000-8000-000000000002', 'http://a', 'contratos_publicacao', 503,
     'away', '2024-01-01', 500, 'contratos_publicacao_2024-01-01', 2, 'failed', 5);
INSERT INTO psa.pncp_pages
    (task_id, page, records, total_records, generation, response_id, bytes, body_hash,
     content_hash, fetched_at)
VALUES
    ('contratos_publicacao_2024-01-01', 1, 500, 1205, 1, '00000000-0000-7000-8000-000000000001',
     51, 'b1', 'c1', '2026-01-01T00:00:00Z'),
    ('contratos_publicacao_2024-01-01', 3, 205, 1205, 1, '00000000-0000-7000-8000-000000000003',
     11, 'b3', 'c3', '2026-01-01T00:00:00Z');
";

async fn a_source_that_nobody_touched_says_what_to_do_next(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    shows(&browser.get("/ui/extractions").await, &["pncp", "built in", "Nothing extracted yet"]);
    shows(&browser.get(SOURCE).await, &["Nothing of this source was extracted here.", NEW]);
    assert_eq!(browser.get("/ui/extractions/nobody").await.status, 404);
    assert_eq!(browser.get(&format!("{SOURCE}/{TASK}")).await.status, 404);
}

async fn the_heat_map_has_a_cell_for_each_endpoint_and_month(place: Place) {
    let server = furnished(place).await;
    let mut browser = Browser::new(&server);
    shows(&browser.get("/ui/extractions").await, &["<strong>1</strong> complete of 6", "705"]);
    let page = browser.get(SOURCE).await;
    shows(
        &page,
        &[
            "title=\"contratos_publicacao 2024-01: Partial, 2 of 3 pages, 705 records\"",
            "title=\"atas_atualizacao 2024-02: Complete, 4 of 4 pages, 1,999 records\"",
            "href=\"pncp/contratos_publicacao_2024-01-01\"",
            ">◐66</i>",
            "colspan=\"3\">2024</th>",
            "<strong>1</strong> complete of 6",
        ],
    );
    assert_eq!(page.text.matches("<i aria-hidden=\"true\">○</i></a>").count(), 3, "pending");
    // The state that is asked for stands out, and rows without it go.
    let page = browser.get(&format!("{SOURCE}?status=failed")).await;
    assert!(!page.text.contains("contratos_publicacao 2024-01"));
    assert!(
        page.text.contains("class=\"complete other\"") && page.text.contains("class=\"failed\"")
    );
    let page = browser.get(&format!("{SOURCE}?endpoint=CONTRATOS&from=2024-02")).await;
    assert!(page.text.contains("colspan=\"2\">2024") && !page.text.contains("atas_atualizacao 20"));
    let page = browser.get(&format!("{SOURCE}?endpoint=nothing-like-it")).await;
    shows(&page, &["No endpoint matches this."]);
    let language = browser.request(reqwest::Method::GET, SOURCE).header("Accept-Language", "pt-BR");
    let page = browser.send(language).await;
    shows(&page, &["2024-01: Parcial, 2 de 3 páginas, 705 registros", "Retomar o que falta"]);
}

async fn a_task_names_its_missing_pages_and_a_page_its_body(place: Place) {
    let server = furnished(place).await;
    let mut browser = Browser::new(&server);
    let path = format!("{SOURCE}/{TASK}");
    let page = browser.get(&path).await;
    shows(
        &page,
        &[
            "short by records: 205",
            "<p class=\"mono limited\">2</p>",
            "3 pages, 1,205 records",
            "2 pages, 705 records, 62 B",
            "2024-01-01 – 2024-01-31",
            "/pages/1\">1</a>",
            ">failed</span>",
            "&#60;script&#62;",
        ],
    );
    assert!(!page.text.contains("<script>alert") && !page.text.contains("/pages/2\""));
    let page = browser.get(&format!("{path}?missing=yes")).await;
    assert!(page.text.contains("data-key=\"2\"") && !page.text.contains("data-key=\"1\""));
    let page = browser.get(&format!("{path}?after=1")).await;
    assert!(page.text.contains("data-key=\"3\"") && !page.text.contains("data-key=\"1\""));

    let page = browser.get(&format!("{path}/pages/1")).await;
    shows(&page, &["&#34;objeto&#34;: &#34;&#60;script&#62;alert(1)", "51 B", "<code>b1</code>"]);
    assert!(!page.text.contains("<script>alert"), "what was stored does nothing");
    for nothing in ["2", "99", "0", "x", "-1", "99999999999"] {
        let page = browser.get(&format!("{path}/pages/{nothing}")).await;
        assert_eq!(page.status, 404, "{nothing}");
    }
    assert_eq!(browser.get(&format!("{SOURCE}/nothing_2024-01-01")).await.status, 404);
}

async fn a_run_is_planned_and_then_started(place: Place) {
    let server = Server::on(place).await;
    types(&server).await;
    let mut browser = Browser::new(&server);
    shows(&browser.get(NEW).await, &["value=\"contratos_publicacao\"", "value=\"plan\""]);
    let form = [
        ("source", "pncp"),
        ("from", "2024-01"),
        ("to", "2024-03"),
        ("endpoint", "contratos_publicacao"),
        ("endpoint", "contratacoes_publicacao"),
        ("base_url", "http://127.0.0.1:1/api"),
    ];
    let plan = browser.submit(NEW, NEW, &[&form[..], &[("do", "plan")]].concat()).await;
    shows(&plan, &["45 requests to the source, at least", "45 tasks, 45 new", "value=\"start\""]);
    let tasks = server.get("/tasks").await.expect(200);
    assert_eq!(tasks["items"], json!([]), "a plan does nothing");

    let started = browser.submit(NEW, NEW, &[&form[..], &[("do", "start")]].concat()).await;
    let expected = "/ui/extractions/pncp?said=The+extraction+has+started.";
    assert_eq!(started.header("location"), Some(expected));
    let task = server.get("/tasks").await.expect(200)["items"][0].clone();
    assert_eq!(task["type"], "extract");
    let id = task["id"].as_str().unwrap();
    let input = server.get(&format!("/tasks/{id}/input")).await.expect(200);
    assert_eq!(input["payload"]["endpoints"].as_array().unwrap().len(), 2);
    assert_eq!(input["payload"]["base_url"], "http://127.0.0.1:1/api");
    shows(&browser.get(SOURCE).await, &[&format!("/ui/tasks/{id}"), "Extraction"]);
    shows(&browser.get(&format!("/ui/tasks/{id}")).await, &["href=\"/ui/extractions/pncp\""]);
    // The next one goes where the last one went.
    shows(&browser.get(NEW).await, &["value=\"http://127.0.0.1:1/api\""]);

    for (field, wrong) in
        [("from", "2024-05"), ("to", "soon"), ("endpoint", "nobody"), ("base_url", "ftp://a")]
    {
        let form =
            form.iter().map(|(name, value)| (*name, if *name == field { wrong } else { *value }));
        let form: Vec<_> = form.chain([("do", "start")]).collect();
        let page = browser.submit(NEW, NEW, &form).await;
        assert_eq!(page.status, 422, "{field}");
        assert!(page.text.contains("role=\"alert\""), "{field}");
    }
}

async fn a_source_of_one_s_own_is_run_from_its_definition(place: Place) {
    let server = Server::on(place).await;
    types(&server).await;
    let mut browser = Browser::new(&server);
    let definition = lavra_extract::source::Source::built_in("pncp").unwrap().unwrap().text;
    let definition = definition.replacen("name = \"pncp\"", "name = \"mine\"", 1);
    shows(&browser.get(&format!("{NEW}?other=yes")).await, &["id=\"n-definition\""]);
    let form =
        [("other", "yes"), ("definition", "name = 1"), ("from", "2024-01"), ("to", "2024-01")];
    let page = browser.submit(NEW, NEW, &[&form[..], &[("do", "plan")]].concat()).await;
    assert_eq!(page.status, 422, "{page:?}");
    let form =
        [("other", "yes"), ("definition", &definition), ("from", "2024-01"), ("to", "2024-01")];
    let page = browser.submit(NEW, NEW, &[&form[..], &[("do", "plan")]].concat()).await;
    shows(&page, &["value=\"contratos_publicacao\"", "value=\"start\""]);
    let started = browser.submit(NEW, NEW, &[&form[..], &[("do", "start")]].concat()).await;
    assert!(
        started.header("location").unwrap().starts_with("/ui/extractions/mine?"),
        "{started:?}"
    );
    shows(&browser.get("/ui/extractions/mine").await, &["Waiting", "/ui/tasks/"]);
    shows(&browser.get(&format!("{NEW}?source=mine")).await, &["name = &#34;mine&#34;"]);
}

async fn what_is_there_is_taken_up_refreshed_audited_and_exported(place: Place) {
    let server = furnished(place).await;
    let mut browser = Browser::new(&server);
    let last = async || {
        let task = server.get("/tasks").await.expect(200)["items"][0].clone();
        let id = task["id"].as_str().unwrap();
        let input = server.get(&format!("/tasks/{id}/input")).await.expect(200)["payload"].clone();
        (task["type"].as_str().unwrap().to_owned(), input)
    };
    let order = json!({"type": "extract", "payload": {
        "source": "pncp", "from": "2024-01", "to": "2024-03", "base_url": "http://127.0.0.1:1/"}});
    server.post("/tasks", &order).await.expect(201);

    let done = browser.submit(SOURCE, ORDER, &[("do", "retry")]).await;
    assert!(done.header("location").unwrap().starts_with(SOURCE), "{done:?}");
    let (kind, input) = last().await;
    assert_eq!((kind.as_str(), &input["retry"]), ("extract", &json!(true)));
    assert_eq!(input["base_url"], "http://127.0.0.1:1/", "where the last run went");

    let path = format!("{SOURCE}/{TASK}");
    let one = [("endpoint", "contratos_publicacao"), ("from", "2024-01"), ("to", "2024-01")];
    let refresh = [&one[..], &[("do", "refresh"), ("back", &path)]].concat();
    let asked = browser.submit(&path, ORDER, &refresh).await;
    shows(&asked, &["Are you sure?", "contratos_publicacao 2024-01"]);
    let form = [&refresh[..], &[("confirmed", "yes")]].concat();
    let done = browser.submit(&path, ORDER, &form).await;
    assert!(done.header("location").unwrap().starts_with(&path), "{done:?}");
    let (_, input) = last().await;
    assert_eq!((&input["refresh"], &input["from"]), (&json!(true), &json!("2024-01")));
    assert_eq!(input["endpoints"], json!(["contratos_publicacao"]));

    let audit = [("do", "audit"), ("from", "2024-01"), ("repair", "yes")];
    let done = browser.submit(ORDER, ORDER, &audit).await;
    assert!(done.header("location").unwrap().starts_with("/ui/tasks/"), "{done:?}");
    let (kind, input) = last().await;
    assert_eq!((kind.as_str(), &input["repair"]), ("extract_audit", &json!(true)));
    let export = [("do", "export"), ("format", "csv"), ("out", "a/b"), ("partial", "yes")];
    browser.submit(ORDER, ORDER, &export).await;
    let (kind, input) = last().await;
    assert_eq!((kind.as_str(), &input["format"]), ("extract_export", &json!("csv")));
    assert_eq!((&input["out"], &input["partial"]), (&json!("a/b"), &json!(true)));
    let before = server.written().await;
    for wrong in [
        [("do", "export"), ("format", "csv"), ("out", "../x")],
        [("do", "audit"), ("from", "2024-03"), ("to", "2024-01")],
        [("do", "retry"), ("from", "soon"), ("to", "")],
        [("do", "retry"), ("endpoint", "nobody"), ("to", "")],
    ] {
        let done = browser.submit(SOURCE, ORDER, &wrong).await;
        assert!(done.header("location").unwrap().contains("said="), "{wrong:?}: {done:?}");
    }
    assert_eq!(server.written().await, before, "nothing was made of what is wrong");
}

/// As someone may send them who is not a browser.
async fn odd_addresses_and_odd_forms_are_no_fault_of_the_server(place: Place) {
    let server = furnished(place).await;
    let mut browser = Browser::new(&server);
    let csrf = token(&browser.get(NEW).await);
    let encoded =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let long = "x".repeat(10_000);
    let task = format!("{SOURCE}/{TASK}");
    for odd in ODD.iter().copied().chain([long.as_str(), "0000-01", "-9223372036854775808"]) {
        for (path, names) in [
            (SOURCE, &["status", "endpoint", "from", "to", "said"][..]),
            (NEW, &["source", "other", "definition", "from", "to", "endpoint", "base_url", "do"]),
            (task.as_str(), &["after", "missing", "said"]),
        ] {
            for name in names {
                let page = browser.get(&format!("{path}?{name}={}", encoded(odd))).await;
                assert!(page.status.as_u16() < 500, "{path} {name}={odd:?}: {page:?}");
                assert!(!page.text.contains("<script>alert"), "{path} {name}={odd:?}");
            }
        }
        let odd_path = encoded(odd);
        for path in [
            format!("/ui/extractions/{odd_path}"),
            format!("{SOURCE}/{odd_path}"),
            format!("{task}/pages/{odd_path}"),
            format!("/ui/extractions/{odd_path}/{TASK}"),
        ] {
            let page = browser.get(&path).await;
            assert!(page.status.as_u16() < 500, "{path}: {page:?}");
            assert!(!page.text.contains("<script>alert"), "{path}");
        }
        let run = [
            ("do", "plan"),
            ("source", "pncp"),
            ("definition", ""),
            ("from", "2024-01"),
            ("to", "2024-01"),
            ("endpoint", "contratos_publicacao"),
            ("refresh", "yes"),
            ("base_url", ""),
        ];
        let order = [
            ("do", "export"),
            ("endpoint", "contratos_publicacao"),
            ("from", "2024-01"),
            ("to", "2024-01"),
            ("format", "csv"),
            ("out", "a"),
            ("confirmed", "yes"),
            ("back", SOURCE),
        ];
        for (action, right) in [(NEW, run), (ORDER, order)] {
            for (field, _) in right {
                let form =
                    right.map(|(name, value)| (name, if name == field { odd } else { value }));
                let form = [&form[..], &[("csrf", csrf.as_str())]].concat();
                let page = browser.post(action, &form).await;
                assert!(page.status.as_u16() < 500, "{action} {field}={odd:?}: {page:?}");
                assert!(!page.text.contains("<script>alert"), "{action} {field}={odd:?}");
            }
        }
    }
}

#[tokio::test]
async fn who_may_only_look_is_offered_nothing_else() {
    let server = furnished(Place::file()).await;
    let order = json!({"type": "extract", "payload": {
        "source": "pncp", "from": "2024-01", "to": "2024-03", "base_url": "http://MARKER/"}});
    server.post("/tasks", &order).await.expect(201);
    for (role, is_offered) in [(Role::Viewer, false), (Role::Operator, true)] {
        let (_, key) = server.make_key(role).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&key).await;
        for path in [SOURCE, &format!("{SOURCE}/{TASK}"), ORDER] {
            let page = browser.get(path).await;
            let offers = page.text.contains("pncp/order\" method=\"post\"");
            assert_eq!(offers, is_offered, "{role} {path}");
        }
        let new = browser.get(NEW).await;
        assert_eq!(new.text.contains("value=\"plan\""), is_offered, "{role}");
        for path in [SOURCE, NEW] {
            let page = browser.get(path).await;
            assert_eq!(page.text.contains("http://MARKER"), is_offered, "{role} {path}");
        }
    }
}
