//! What failed for good.

use std::collections::HashSet;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(letters_are_listed_redriven_and_removed);

async fn fail(server: &Server, kind: &str) -> String {
    let id = server.create(kind, &json!({})).await;
    let task = server.claim(Uuid::new_v4(), kind).await;
    let hopeless = json!({"error": "hopeless", "retryable": false});
    server.report(&task, "fail", hopeless).await.expect(200);
    id
}

async fn letters(server: &Server, query: &str) -> Value {
    server.get(&format!("/dead-letters{query}")).await.expect(200)
}

fn count(page: &Value) -> usize {
    page["items"].as_array().unwrap().len()
}

async fn letters_are_listed_redriven_and_removed(place: Place) {
    let server = Server::on(place).await;
    server.tasks.declare(vec!["other".into()]).await.unwrap();
    let first = fail(&server, KIND).await;
    let second = fail(&server, "other").await;
    let third = fail(&server, KIND).await;

    let page = letters(&server, "").await;
    let tasks: Vec<&Value> =
        page["items"].as_array().unwrap().iter().map(|letter| &letter["task_id"]).collect();
    assert_eq!(tasks, [&json!(third), &json!(second), &json!(first)]);
    let newest = &page["items"][0];
    assert_eq!((&newest["reason"], &newest["type"]), (&json!("hopeless"), &json!(KIND)));

    // Page by page.
    let (mut seen, mut cursor) = (HashSet::new(), String::new());
    loop {
        let page = letters(&server, &format!("?limit=1{cursor}")).await;
        assert_eq!(count(&page), 1);
        seen.insert(page["items"][0]["id"].as_str().unwrap().to_owned());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen.len(), 3);

    let id = newest["id"].as_str().unwrap();
    let redriven = server.ask(&format!("/dead-letters/{id}:redrive")).await.expect(200);
    assert_eq!((&redriven["id"], &redriven["status"]), (&json!(third), &json!("PENDING")));
    server.ask(&format!("/dead-letters/{id}:redrive")).await.problem(404, "dead_letter_not_found");
    assert_eq!(count(&letters(&server, "").await), 2);

    let rest = letters(&server, "").await;
    let id = rest["items"][0]["id"].as_str().unwrap();
    server.delete(&format!("/dead-letters/{id}")).await.expect(204);
    server.delete(&format!("/dead-letters/{id}")).await.problem(404, "dead_letter_not_found");
    assert_eq!(server.task(&second).await["status"], "FAILED");
}

#[tokio::test]
async fn many_are_redriven_each_by_itself() {
    let server = Server::file().await;
    server.tasks.declare(vec!["other".into()]).await.unwrap();
    let fine = fail(&server, KIND).await;
    fail(&server, "other").await;
    let (none, foreign) = (Uuid::new_v4(), Uuid::new_v4());
    // A message that could not be read names no task.
    let letter = lavra_tasks::store::DeadLetter {
        id: lavra_tasks::model::DeadLetterId(foreign),
        task_id: None,
        kind: Some(KIND.into()),
        reason: "not JSON".into(),
        body: Some("…".into()),
        created_at: server.tasks.now(),
    };
    server.tasks.store().bury(letter).await.unwrap();
    let all = letters(&server, "").await;
    let letter = all["items"].as_array().unwrap().iter().find(|letter| letter["task_id"] == fine);
    let letter = letter.unwrap()["id"].clone();

    let body = json!({"ids": [none, letter, foreign]});
    let answer = server.post("/dead-letters:redrive", &body).await.expect(200);
    let items = answer["items"].as_array().unwrap();
    let brief: Vec<(&Value, &Value)> =
        items.iter().map(|item| (&item["redriven"], &item["code"])).collect();
    assert_eq!(
        brief,
        [
            (&json!(false), &json!("dead_letter_not_found")),
            (&json!(true), &Value::Null),
            (&json!(false), &json!("invalid_request")),
        ]
    );
    assert_eq!(items[1]["task_id"], fine);
    assert_eq!(server.task(&fine).await["status"], "PENDING");

    for _ in 0..3 {
        server.claim(Uuid::new_v4(), KIND).await;
        fail(&server, KIND).await;
        server.create(KIND, &json!({})).await;
    }
    let body = json!({"type": KIND, "limit": 2});
    let answer = server.post("/dead-letters:redrive", &body).await.expect(200);
    let items = answer["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    assert!(items.iter().all(|item| item["redriven"] == true), "{answer}");
    // Left: the one that was not asked for, the other type, and the one without a task.
    assert_eq!(count(&letters(&server, "").await), 3);
}
