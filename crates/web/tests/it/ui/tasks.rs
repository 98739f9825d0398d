//! Tasks: the list, one of them, and a new one.

use lavra_web::access::Role;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::browser::{Browser, ODD, token};
use crate::support::server::KIND;
use crate::support::{Place, Reply, Server, on_each_engine};

on_each_engine!(
    counts_by_state_are_the_filters_of_the_list,
    the_list_goes_on_page_by_page,
    a_task_says_why_it_waits,
    a_task_shows_what_it_was_given_and_what_it_left,
    all_events_of_a_task_can_be_read,
    a_cancellation_is_asked_for_twice_and_a_retry_is_not,
    a_task_is_made_by_a_form_that_keeps_what_was_typed,
    odd_addresses_and_odd_forms_are_no_fault_of_the_server,
);

#[track_caller]
fn shows(page: &Reply, texts: &[&str]) {
    assert_eq!(page.status, 200, "{page:?}");
    for text in texts {
        assert!(page.text.contains(text), "{text:?} is not in {}", page.text);
    }
}

async fn counts_by_state_are_the_filters_of_the_list(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    shows(&browser.get("/ui/tasks").await, &["No task yet."]);
    server.tasks.declare(vec!["other".into()]).await.unwrap();
    let waiting = server.create(KIND, &json!(1)).await;
    let cancelled = server.create("other", &json!(2)).await;
    server.ask(&format!("/tasks/{cancelled}:cancel")).await.expect(200);
    let page = browser.get("/ui/tasks").await;
    shows(&page, &["<b>2</b>", &waiting, &cancelled, "other (1)", ">Cancelled by user"]);
    let page = browser.get("/ui/tasks?status=cancelled").await;
    assert!(page.text.contains(&cancelled) && !page.text.contains(&waiting));
    let page = browser.get("/ui/tasks?type=count").await;
    assert!(!page.text.contains(&cancelled) && page.text.contains(&waiting));
    shows(&browser.get("/ui/tasks?status=failed").await, &["No task matches this."]);
}

async fn the_list_goes_on_page_by_page(place: Place) {
    let server = Server::on(place).await;
    let tasks: Vec<Value> = (0..120).map(|n| json!({"type": KIND, "payload": n})).collect();
    server.post("/tasks:batch", &json!({ "tasks": tasks })).await.expect(201);
    let mut browser = Browser::new(&server);
    let (mut seen, mut path) = (Vec::new(), "/ui/tasks?status=pending".to_owned());
    loop {
        let page = browser.get(&path).await;
        let keys = page.text.split("data-key=\"").skip(1);
        seen.extend(keys.map(|rest| rest.split('"').next().unwrap().to_owned()));
        let Some((_, rest)) = page.text.split_once("rel=\"next\" href=\"") else { break };
        path = rest.split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&");
        assert!(path.contains("status=pending"), "the filter stays: {path}");
    }
    assert_eq!(seen.len(), 120);
    assert!(seen.is_sorted_by(|one, next| one > next), "the newest first, none twice");
}

async fn a_task_says_why_it_waits(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let first = server.create(KIND, &json!(1)).await;
    let second = server.create(KIND, &json!(2)).await;
    let page = format!("/ui/tasks/{second}");
    shows(&browser.get(&page).await, &["Why it waits", "a process that runs this type: none"]);
    // A worker that knows the type makes itself known, and takes the first.
    let worker = Uuid::new_v4();
    let claimed = server.claim(worker, KIND).await;
    assert_eq!(claimed["id"], first.as_str());
    shows(&browser.get(&page).await, &["it is the next of its type"]);
    let third = server.create(KIND, &json!(3)).await;
    let page = format!("/ui/tasks/{third}");
    shows(&browser.get(&page).await, &["its turn; before it, of its type: 1"]);
    let later = json!({"type": KIND, "payload": 4, "delay_seconds": 7200});
    let later = server.post("/tasks", &later).await.expect(201)["id"].clone();
    let page = browser.get(&format!("/ui/tasks/{}", later.as_str().unwrap())).await;
    shows(&page, &["its time:", "(in 1 h 59 min"]);
    server.report(&claimed, "fail", json!({"error": "away", "retry_after_seconds": 600})).await;
    let page = browser.get(&format!("/ui/tasks/{first}")).await;
    assert!(page.text.contains("away"), "{}", page.text);
}

async fn a_task_shows_what_it_was_given_and_what_it_left(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let evil = "<script>alert(1)</script>";
    let order = json!({
        "type": KIND, "payload": {"say": evil}, "metadata": {"note": evil, "schedule": "a b"},
    });
    let id = server.post("/tasks", &order).await.expect(201)["id"].as_str().unwrap().to_owned();
    let claimed = server.claim(Uuid::new_v4(), KIND).await;
    let step = json!({"progress": 40, "state": evil, "detail": {"where": evil}});
    server.report(&claimed, "progress", step).await.expect(200);
    let path = format!("/ui/tasks/{id}");
    let page = browser.get(&path).await;
    shows(&page, &["value=\"40\"", "In progress", "&#34;say&#34;: ", "#a%20b"]);
    server.report(&claimed, "complete", json!({"result": {"left": evil}})).await.expect(200);
    let page = browser.get(&path).await;
    shows(&page, &["&#34;left&#34;: ", ">Completed</span>", ">worker</td>", ">where</span>"]);
    assert!(!page.text.contains("<script>alert"), "what was stored does nothing");
    assert!(page.text.contains("&#60;script&#62;alert(1)"));
}

async fn all_events_of_a_task_can_be_read(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let id = server.create(KIND, &json!(1)).await;
    let claimed = server.claim(Uuid::new_v4(), KIND).await;
    for n in 0..60 {
        let step = json!({"progress": n, "state": format!("step {n:02}")});
        server.report(&claimed, "progress", step).await.expect(200);
    }
    let page = browser.get(&format!("/ui/tasks/{id}")).await;
    shows(&page, &[">step 59<", ">step 10<"]);
    assert!(!page.text.contains(">step 09<"), "fifty on a page");
    let (_, rest) = page.text.split_once("rel=\"next\" href=\"").unwrap();
    let older = browser.get(rest.split('"').next().unwrap()).await;
    shows(&older, &[">step 09<", ">step 00<", ">Queued<"]);
    assert!(!older.text.contains(">step 10<") && !older.text.contains("rel=\"next\""));
}

async fn a_cancellation_is_asked_for_twice_and_a_retry_is_not(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let id = server.create(KIND, &json!(1)).await;
    let (path, act) = (format!("/ui/tasks/{id}"), format!("/ui/tasks/{id}/act"));
    let asked = browser.submit(&path, &act, &[("do", "cancel")]).await;
    shows(&asked, &["Are you sure?"]);
    assert_eq!(server.task(&id).await["status"], "PENDING");
    let form = [("do", "cancel"), ("confirmed", "yes")];
    let done = browser.submit(&path, &act, &form).await;
    assert_eq!(done.header("location"), Some(&*format!("{path}?said=The+task+is+cancelled.")));
    assert_eq!(server.task(&id).await["status"], "CANCELLED");
    let again = browser.submit(&path, &act, &form).await;
    assert!(again.header("location").unwrap().contains("cannot+be+cancelled"), "{again:?}");
    browser.submit(&path, &act, &[("do", "retry")]).await;
    assert_eq!(server.task(&id).await["status"], "PENDING");
    assert_eq!(browser.get(&format!("/ui/tasks/{}", Uuid::nil())).await.status, 404);
    assert_eq!(browser.get("/ui/tasks/nothing").await.status, 400);
}

async fn a_task_is_made_by_a_form_that_keeps_what_was_typed(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let new = "/ui/tasks/new";
    shows(&browser.get(new).await, &["<option value=\"count\""]);
    let form = [("type", KIND), ("payload", "{\"to\": 5}"), ("priority", "7"), ("delay", "60")];
    let made = browser.submit(new, new, &form).await;
    let made = made.header("location").unwrap().to_owned();
    let id = made.strip_prefix("/ui/tasks/").unwrap().split('?').next().unwrap();
    assert_eq!(server.task(id).await["priority"], 7);
    assert_eq!(
        server.get(&format!("/tasks/{id}/input")).await.expect(200)["payload"],
        json!({"to": 5})
    );
    for (form, wrong) in [
        ([("type", KIND), ("payload", "{not json")], "The input is not JSON"),
        ([("type", "nobody-knows"), ("payload", "{\"a\": 1}")], "nobody here knows"),
        ([("type", KIND), ("max_retries", "many")], "is no number"),
        ([("type", KIND), ("max_retries", "-1")], "between 0 and 1000"),
    ] {
        let page = browser.submit(new, new, &form).await;
        assert_eq!(page.status, 422, "{form:?}");
        assert!(page.text.contains("role=\"alert\"") && page.text.contains(wrong), "{form:?}");
        let typed = form[1].1.replace('"', "&#34;");
        assert!(page.text.contains(&typed), "{typed} is kept");
    }
}

/// As someone may send them who is not a browser.
async fn odd_addresses_and_odd_forms_are_no_fault_of_the_server(place: Place) {
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!(1)).await;
    let mut browser = Browser::new(&server);
    let csrf = token(&browser.get("/ui/tasks/new").await);
    let encoded =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let long = "x".repeat(10_000);
    let (list, one, act) =
        ("/ui/tasks".to_owned(), format!("/ui/tasks/{id}"), format!("/ui/tasks/{id}/act"));
    for odd in ODD.iter().copied().chain([long.as_str(), "-9223372036854775808"]) {
        for (path, names) in [
            (&list, &["status", "type", "before", "said"][..]),
            (&one, &["before", "said"]),
            (&"/ui/tasks/new".to_owned(), &["type", "payload"]),
        ] {
            for name in names {
                let page = browser.get(&format!("{path}?{name}={}", encoded(odd))).await;
                assert!(page.status.as_u16() < 500, "{path} {name}={odd:?}: {page:?}");
                assert!(!page.text.contains("<script>alert"), "{path} {name}={odd:?}");
            }
        }
        let page = browser.get(&format!("/ui/tasks/{}", encoded(odd))).await;
        assert!(page.status.as_u16() < 500, "{odd:?}: {page:?}");
        for (action, names) in [
            (&act, &["do", "confirmed"][..]),
            (
                &"/ui/tasks/new".to_owned(),
                &["type", "payload", "priority", "max_retries", "delay", "idempotent"],
            ),
        ] {
            for name in names {
                let mut form = vec![("csrf", csrf.as_str()), (*name, odd)];
                if *name != "type" && action.ends_with("new") {
                    form.push(("type", KIND));
                }
                let page = browser.post(action, &form).await;
                assert!(page.status.as_u16() < 500, "{action} {name}={odd:?}: {page:?}");
                assert!(!page.text.contains("<script>alert"), "{action} {name}={odd:?}");
            }
        }
    }
}

#[tokio::test]
async fn who_may_only_look_is_offered_nothing_else_and_sees_no_input() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({"token": "MARKER"})).await;
    for (role, is_offered) in [(Role::Viewer, false), (Role::Operator, true)] {
        let (_, key) = server.make_key(role).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&key).await;
        let page = browser.get(&format!("/ui/tasks/{id}")).await;
        assert_eq!(page.text.contains("/act\""), is_offered, "{role}");
        assert_eq!(page.text.contains("MARKER"), is_offered, "{role}");
        let list = browser.get("/ui/tasks").await;
        assert_eq!(list.text.contains("/ui/tasks/new"), is_offered, "{role}");
    }
}
