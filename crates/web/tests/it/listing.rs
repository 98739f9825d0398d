//! GET /tasks, page by page.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::server::KIND;
use crate::support::{Client, Server};

async fn many(server: &Client, kind: &str, count: usize) -> Vec<String> {
    let tasks: Vec<Value> = (0..count).map(|n| json!({"type": kind, "payload": n})).collect();
    let made = server.post("/tasks:batch", &json!({ "tasks": tasks })).await.expect(201);
    let made = made.as_array().unwrap().iter();
    made.map(|made| made["id"].as_str().unwrap().to_owned()).collect()
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_thousand_tasks_come_once_each_while_new_ones_are_made() {
    let server = Server::file().await;
    let expected: HashSet<String> = many(&server, KIND, 1000).await.into_iter().collect();
    let client = server.client.clone();
    let making = tokio::spawn(async move {
        for _ in 0..40 {
            many(&client, KIND, 5).await;
        }
    });
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/tasks?limit=37{cursor}")).await.expect(200);
        seen.extend(ids(&page));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    making.await.unwrap();
    let unique: HashSet<String> = seen.iter().cloned().collect();
    assert_eq!(unique.len(), seen.len(), "a task came twice");
    assert!(expected.is_subset(&unique), "a task was left out");
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first");
}

#[tokio::test]
async fn the_last_page_has_no_cursor_even_when_it_is_full() {
    let server = Server::file().await;
    many(&server, KIND, 20).await;
    let page = server.get("/tasks?limit=20").await.expect(200);
    assert_eq!((ids(&page).len(), &page["next_cursor"]), (20, &Value::Null));
    let page = server.get("/tasks?limit=19").await.expect(200);
    assert!(page["next_cursor"].is_string());
    let usual = server.get("/tasks").await.expect(200);
    assert_eq!(ids(&usual).len(), 20);
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let server = Server::file().await;
    server.tasks.declare(vec!["other".into()]).await.unwrap();
    let old = many(&server, KIND, 3).await;
    let middle = server.tasks.now().to_string();
    let new = many(&server, "other", 2).await;
    server.post(&format!("/tasks/{}:cancel", old[0]), &json!({})).await.expect(200);
    for (query, expected) in [
        ("type=other".to_owned(), 2),
        ("type=nobody-knows".to_owned(), 0),
        ("status=CANCELLED".to_owned(), 1),
        ("status=PENDING&type=count".to_owned(), 2),
        (format!("created_after={middle}"), 2),
        (format!("created_before={middle}"), 3),
        (format!("created_after={middle}&type=count"), 0),
        (format!("cursor={}", new[0]), 3),
    ] {
        let page = server.get(&format!("/tasks?{query}")).await.expect(200);
        assert_eq!(ids(&page).len(), expected, "{query}");
    }
}
