//! Dead letters: driven again, or dropped.

use lavra_tasks::model::DeadLetterId;
use lavra_tasks::store::DeadLetter;
use lavra_web::access::Role;
use serde_json::json;
use uuid::Uuid;

use crate::support::browser::{Browser, ODD, token};
use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    a_letter_is_driven_again_or_dropped,
    all_letters_are_driven_again_at_once,
    odd_forms_are_no_fault_of_the_server,
);

const PATH: &str = "/ui/dead-letters";
const ACT: &str = "/ui/dead-letters/act";

/// A task that has failed for good.
async fn failed(server: &Server) -> String {
    let order = json!({"type": KIND, "payload": 1, "max_retries": 0});
    let id = server.post("/tasks", &order).await.expect(201)["id"].as_str().unwrap().to_owned();
    let claimed = server.claim(Uuid::new_v4(), KIND).await;
    server.report(&claimed, "fail", json!({"error": "<script>alert(1)</script>"})).await;
    id
}

/// One that names no task.
async fn nobody_s(server: &Server) -> DeadLetterId {
    let store = server.tasks.store();
    let id = DeadLetterId(store.clock().new_id());
    let letter = DeadLetter {
        id,
        task_id: None,
        kind: None,
        reason: "it is no JSON".into(),
        body: Some("{\"a\": <script>alert(1)</script>".into()),
        created_at: store.clock().now(),
    };
    store.bury(letter).await.unwrap();
    id
}

async fn a_letter_is_driven_again_or_dropped(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    assert!(browser.get(PATH).await.text.contains("No dead letters."));
    let task = failed(&server).await;
    let nobody = nobody_s(&server).await.to_string();
    let page = browser.get(PATH).await;
    assert!(page.text.contains(&task) && page.text.contains("no task"), "{}", page.text);
    assert!(!page.text.contains("<script>alert"), "what was stored does nothing");
    assert!(browser.get("/ui/tasks").await.text.contains(">2</span></a>"), "how many there are");

    let letter = server.get("/dead-letters").await.expect(200)["items"].clone();
    let letter = letter.as_array().unwrap().iter().find(|it| !it["task_id"].is_null()).unwrap();
    let id = letter["id"].as_str().unwrap();
    let done = browser.submit(PATH, ACT, &[("do", "redrive"), ("id", id)]).await;
    assert_eq!(done.header("location"), Some("/ui/dead-letters?said=1+back+in+the+queue"));
    assert_eq!(server.task(&task).await["status"], "PENDING");
    let gone = browser.submit(PATH, ACT, &[("do", "redrive"), ("id", id)]).await;
    assert_eq!(gone.status, 404);

    let refused = browser.submit(PATH, ACT, &[("do", "redrive"), ("id", &nobody)]).await;
    assert!(refused.header("location").unwrap().contains("names+no+task"), "{refused:?}");
    let asked = browser.submit(PATH, ACT, &[("do", "drop"), ("id", &nobody)]).await;
    assert!(asked.text.contains("Are you sure?") && asked.text.contains("it is no JSON"));
    let form = [("do", "drop"), ("id", nobody.as_str()), ("confirmed", "yes")];
    browser.submit(PATH, ACT, &form).await;
    assert!(browser.get(PATH).await.text.contains("No dead letters."));
}

async fn all_letters_are_driven_again_at_once(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(failed(&server).await);
    }
    nobody_s(&server).await;
    // One goes on by itself: its letter has nothing to say any more.
    server.ask(&format!("/tasks/{}:retry", tasks[0])).await.expect(200);
    let asked = browser.submit(PATH, ACT, &[("do", "redrive_all")]).await;
    assert!(asked.text.contains("3 dead letters"), "{}", asked.text);
    let form = [("do", "redrive_all"), ("confirmed", "yes")];
    let done = browser.submit(PATH, ACT, &form).await;
    let said = done.header("location").unwrap();
    assert!(said.ends_with("2+back+in+the+queue"), "{said}");
    for task in &tasks {
        assert_eq!(server.task(task).await["status"], "PENDING");
    }
    let left = server.get("/dead-letters").await.expect(200)["items"].clone();
    assert_eq!(left.as_array().unwrap().len(), 1, "what is nobody's stays to be looked at: {left}");
}

async fn odd_forms_are_no_fault_of_the_server(place: Place) {
    let server = Server::on(place).await;
    nobody_s(&server).await;
    let mut browser = Browser::new(&server);
    let csrf = token(&browser.get(PATH).await);
    let long = "x".repeat(10_000);
    for odd in ODD.iter().copied().chain([long.as_str()]) {
        let encoded: String = url::form_urlencoded::byte_serialize(odd.as_bytes()).collect();
        let page = browser.get(&format!("{PATH}?before={encoded}")).await;
        assert!(page.status.as_u16() < 500, "{odd:?}: {page:?}");
        for name in ["do", "id", "confirmed"] {
            let mut form = vec![("csrf", csrf.as_str()), (name, odd)];
            if name != "do" {
                form.push(("do", "redrive"));
            }
            let page = browser.post(ACT, &form).await;
            assert!(page.status.as_u16() < 500, "{name}={odd:?}: {page:?}");
            assert!(!page.text.contains("<script>alert"), "{name}={odd:?}");
        }
    }
}

#[tokio::test]
async fn who_may_only_look_is_offered_nothing_else() {
    let server = Server::file().await;
    failed(&server).await;
    for (role, is_offered) in [(Role::Viewer, false), (Role::Operator, true)] {
        let (_, key) = server.make_key(role).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&key).await;
        let page = browser.get(PATH).await;
        assert_eq!(page.status, 200);
        assert_eq!(page.text.contains(ACT), is_offered, "{role}");
    }
}
