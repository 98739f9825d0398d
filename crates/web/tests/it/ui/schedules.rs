//! Schedules: made, changed, switched, run at once, removed.

use lavra_web::access::Role;
use serde_json::json;

use crate::support::browser::{Browser, ODD, token};
use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    a_schedule_is_made_changed_switched_run_and_removed,
    what_is_typed_wrong_comes_back,
    odd_forms_are_no_fault_of_the_server,
);

const PATH: &str = "/ui/schedules";
const EDIT: &str = "/ui/schedules/edit";
const ACT: &str = "/ui/schedules/act";

async fn a_schedule_is_made_changed_switched_run_and_removed(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    assert!(browser.get(PATH).await.text.contains("No schedule."));
    let form = [
        ("name", "nightly"),
        ("type", KIND),
        ("cron", "17 3 * * *"),
        ("payload", "{\"to\": 3}"),
        ("enabled", "yes"),
    ];
    let saved = browser.submit(EDIT, EDIT, &form).await;
    assert_eq!(saved.header("location"), Some("/ui/schedules?said=The+schedule+is+saved."));
    let page = browser.get(PATH).await;
    for text in ["every day at 03:17", "17 3 * * *", "03:17:00</time>", ">Enabled</span>"] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    assert_eq!(page.text.matches("03:17:00</time>").count(), 3, "the next three times");

    browser.submit(PATH, ACT, &[("do", "disable"), ("name", "nightly")]).await;
    let page = browser.get(PATH).await;
    assert!(page.text.contains(">Disabled</span>") && !page.text.contains("03:17:00</time>"));
    // What is edited stays off.
    let edit = format!("{EDIT}?name=nightly");
    let page = browser.get(&edit).await;
    assert!(page.text.contains("&#34;to&#34;: 3") && page.text.contains(" readonly"));
    let form = [
        ("name", "nightly"),
        ("type", KIND),
        ("cron", "*/5 * * * *"),
        ("payload", "{}"),
        ("known", "yes"),
    ];
    browser.submit(&edit, EDIT, &form).await;
    let now = server.get("/schedules").await.expect(200)["items"][0].clone();
    assert_eq!((&now["cron"], &now["enabled"]), (&json!("*/5 * * * *"), &json!(false)));

    let run = browser.submit(PATH, ACT, &[("do", "run"), ("name", "nightly")]).await;
    let run = run.header("location").unwrap().to_owned();
    let id = run.strip_prefix("/ui/tasks/").unwrap().split('?').next().unwrap();
    assert_eq!(server.task(id).await["metadata"], json!({"schedule": "nightly"}));
    browser.submit(PATH, ACT, &[("do", "enable"), ("name", "nightly")]).await;
    let now = server.get("/schedules").await.expect(200)["items"][0].clone();
    assert_eq!(now["enabled"], true);

    let asked = browser.submit(PATH, ACT, &[("do", "remove"), ("name", "nightly")]).await;
    assert!(asked.text.contains("Are you sure?"));
    let form = [("do", "remove"), ("name", "nightly"), ("confirmed", "yes")];
    browser.submit(PATH, ACT, &form).await;
    assert!(browser.get(PATH).await.text.contains("No schedule."));
    assert_eq!(browser.submit(EDIT, ACT, &form).await.status, 404);
    assert_eq!(browser.get(&edit).await.status, 404);
}

async fn what_is_typed_wrong_comes_back(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let right =
        [("name", "nightly"), ("type", KIND), ("cron", "17 3 * * *"), ("payload", "{\"a\": 1}")];
    for (field, wrong) in [
        ("name", "1 not a name"),
        ("type", "nobody-knows"),
        ("cron", "61 * * * *"),
        ("payload", "{not json"),
    ] {
        let form = right.map(|(name, value)| (name, if name == field { wrong } else { value }));
        let page = browser.submit(EDIT, EDIT, &form).await;
        assert_eq!(page.status, 422, "{field}");
        assert!(page.text.contains("role=\"alert\""), "{field}");
        let kept = if field == "payload" { "{not json" } else { "{&#34;a&#34;: 1}" };
        assert!(page.text.contains(kept), "{field}: {}", page.text);
    }
    assert_eq!(server.get("/schedules").await.expect(200)["items"], json!([]));
}

async fn odd_forms_are_no_fault_of_the_server(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let csrf = token(&browser.get(EDIT).await);
    let long = "x".repeat(10_000);
    for odd in ODD.iter().copied().chain([long.as_str()]) {
        let encoded: String = url::form_urlencoded::byte_serialize(odd.as_bytes()).collect();
        let page = browser.get(&format!("{EDIT}?name={encoded}")).await;
        assert!(page.status.as_u16() < 500, "{odd:?}: {page:?}");
        for (action, right) in [
            (EDIT, &[("name", "a"), ("type", KIND), ("cron", "0 4 * * *"), ("payload", "{}")][..]),
            (ACT, &[("do", "run"), ("name", "a"), ("confirmed", "yes")]),
        ] {
            for (field, _) in right {
                let form = right.iter().map(|(n, v)| (*n, if n == field { odd } else { *v }));
                let form: Vec<_> = form.chain([("csrf", csrf.as_str())]).collect();
                let page = browser.post(action, &form).await;
                assert!(page.status.as_u16() < 500, "{action} {field}={odd:?}: {page:?}");
                assert!(!page.text.contains("<script>alert"), "{action} {field}={odd:?}");
            }
        }
    }
    assert_eq!(browser.get(PATH).await.status, 200);
}

#[tokio::test]
async fn who_may_only_look_is_offered_nothing_else_and_sees_no_payload() {
    let server = Server::file().await;
    let payload = json!({"token": "MARKER"});
    server.tasks.schedule("nightly", KIND, "17 3 * * *", payload).await.unwrap();
    for (role, is_offered) in [(Role::Viewer, false), (Role::Operator, true)] {
        let (_, key) = server.make_key(role).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&key).await;
        let page = browser.get(PATH).await;
        assert!(page.text.contains("nightly") && !page.text.contains("MARKER"));
        assert_eq!(page.text.contains(ACT), is_offered, "{role}");
        let page = browser.get(&format!("{EDIT}?name=nightly")).await;
        assert_eq!(page.text.contains("MARKER"), is_offered, "{role}");
    }
}
