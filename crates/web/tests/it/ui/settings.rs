//! Settings, keys and webhooks.

use lavra_web::access::Role;
use serde_json::json;

use crate::support::browser::{Browser, ODD, token};
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    settings_are_changed_and_mistakes_are_kept_in_the_form,
    a_key_is_shown_once_and_opens_until_it_is_revoked,
    a_webhook_is_added_changed_tested_and_removed,
    odd_forms_are_no_fault_of_the_server,
);

async fn settings_are_changed_and_mistakes_are_kept_in_the_form(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let path = "/ui/settings";
    let page = browser.get(path).await;
    for text in ["name=\"session_limit\"", "value=\"5\"", "fleet.timeout_session_ms", ">3 min<"] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    let form = [("session_limit", "9"), ("max_retries", "0"), ("proxy_failures", "consecutive")];
    let saved = browser.submit(path, path, &form).await;
    assert_eq!(saved.header("location"), Some("/ui/settings?said=Saved."));
    let now = server.get("/fleet/settings").await.expect(200);
    let expected = json!({ "session_limit": 9, "max_retries": 0, "proxy_failures": "consecutive" });
    assert_eq!(now, expected);
    for (name, value) in [("session_limit", "0"), ("max_retries", "21"), ("proxy_failures", "x")] {
        let form = form.map(|(field, old)| (field, if field == name { value } else { old }));
        let page = browser.submit(path, path, &form).await;
        assert_eq!(page.status, 422, "{name}={value}");
        assert!(
            page.text.contains("role=\"alert\"")
                && page.text.contains("value=\"9\"") != (name == "session_limit")
        );
    }
    assert_eq!(server.get("/fleet/settings").await.expect(200), expected);
}

async fn a_key_is_shown_once_and_opens_until_it_is_revoked(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let path = "/ui/keys";
    assert!(browser.get(path).await.text.contains("No key yet"));
    let form = [("name", "ana <1>"), ("role", "operator"), ("life", "90")];
    let made = browser.submit(path, path, &form).await;
    assert_eq!(made.status, 200, "no address has it: {made:?}");
    assert_eq!(made.header("location"), None);
    let (_, rest) = made.text.split_once("readonly value=\"").unwrap();
    let key = rest.split('"').next().unwrap().to_owned();
    assert!(key.starts_with("lavra_"), "{key}");
    let id = key.split('_').nth(1).unwrap().to_owned();
    let list = browser.get(path).await;
    assert!(list.text.contains("ana &#60;1&#62;") && list.text.contains(&format!("lavra_{id}_…")));
    assert!(!list.text.contains(&key), "never again");

    let mut other = Browser::new(&server);
    other.log_in(&key).await;
    assert!(other.has_session());
    assert_eq!(other.get(path).await.status, 403, "an operator has no business there");
    let revoke = format!("/ui/keys/{id}/revoke");
    let asked = browser.submit(path, &revoke, &[]).await;
    assert!(asked.text.contains("Are you sure?") && other.get("/ui").await.status == 200);
    let done = browser.submit(path, &revoke, &[("confirmed", "yes")]).await;
    assert!(done.header("location").unwrap().starts_with("/ui/keys?said=Revoked"), "{done:?}");
    assert_eq!(other.get("/ui").await.status, 303, "to the login page");
    assert!(browser.get(path).await.text.contains(">Revoked</span>"));
    for form in [[("name", ""), ("role", "viewer")], [("name", "a"), ("role", "king")]] {
        let wrong = browser.submit(path, path, &form).await;
        assert_eq!(wrong.status, 422, "{form:?}");
        assert!(wrong.text.contains("role=\"alert\""));
    }
}

async fn a_webhook_is_added_changed_tested_and_removed(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let (list, new) = ("/ui/webhooks", "/ui/webhooks/new");
    assert!(browser.get(list).await.text.contains("No webhook yet"));
    let form = [("name", "ops"), ("url", "http://127.0.0.1:1/MARKER"), ("event", "mission.failed")];
    let made = browser.submit(new, new, &form).await;
    assert_eq!(made.status, 200);
    assert!(made.text.contains("readonly value=\"") && !made.text.contains("MARKER"));
    let own = [
        ("name", "mine"),
        ("url", "https://hooks.example.com/MARKER"),
        ("secret", "MARKER-of-16-or-more"),
    ];
    let added = browser.submit(new, new, &own).await;
    assert_eq!(added.header("location"), Some("/ui/webhooks?said=Added%3A+mine"));
    let page = browser.get(list).await;
    for text in ["a mission failed", "https://hooks.example.com/…", "none yet"] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    assert!(!page.text.contains("MARKER"));
    let all = server.get("/webhooks").await.expect(200);
    let ops = all["items"].as_array().unwrap().iter().find(|it| it["name"] == "ops").unwrap();
    let id = ops["id"].as_str().unwrap();
    let edit = format!("{list}/{id}/edit");
    let page = browser.get(&edit).await;
    assert!(
        page.text.contains("value=\"mission.failed\" checked") && !page.text.contains("MARKER")
    );
    let form = [("name", "ops 2"), ("event", "pool.exhausted"), ("event", "mission.failed")];
    browser.submit(&edit, &edit, &form).await;
    let now = server.get(&format!("/webhooks/{id}")).await.expect(200);
    assert_eq!(now["events"], json!(["mission.failed", "pool.exhausted"]));
    let taken = browser.submit(&edit, &edit, &[("name", "mine")]).await;
    assert_eq!(taken.status, 422, "{taken:?}");
    let act = format!("{list}/{id}/act");
    let tested = browser.submit(list, &act, &[("do", "test")]).await;
    assert!(tested.header("location").unwrap().contains("did+not+take"), "{tested:?}");
    browser.submit(list, &act, &[("do", "deactivate")]).await;
    assert!(browser.get(list).await.text.contains(">Deactivated</span>"));
    let asked = browser.submit(list, &act, &[("do", "remove")]).await;
    assert!(asked.text.contains("Are you sure?"));
    browser.submit(list, &act, &[("do", "remove"), ("confirmed", "yes")]).await;
    assert!(!browser.get(list).await.text.contains(">ops 2</a>"));
}

async fn odd_forms_are_no_fault_of_the_server(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let csrf = token(&browser.get("/ui/settings").await);
    let long = "x".repeat(10_000);
    for odd in ODD.iter().copied().chain([long.as_str()]) {
        for (action, names) in [
            ("/ui/settings", &["session_limit", "max_retries", "proxy_failures"][..]),
            ("/ui/keys", &["name", "role", "life"]),
            ("/ui/webhooks/new", &["name", "url", "secret", "event"]),
        ] {
            let usual = [
                ("session_limit", "5"),
                ("max_retries", "2"),
                ("proxy_failures", "total"),
                ("name", "n"),
                ("role", "viewer"),
                ("url", "http://127.0.0.1:1"),
            ];
            for name in names {
                let mut form = vec![("csrf", csrf.as_str()), (*name, odd)];
                form.extend(usual.iter().filter(|(field, _)| field != name));
                let page = browser.post(action, &form).await;
                assert!(page.status.as_u16() < 500, "{action} {name}={odd:?}: {page:?}");
                assert!(!page.text.contains("<script>alert"), "{action} {name}={odd:?}");
            }
        }
        let value: String = url::form_urlencoded::byte_serialize(odd.as_bytes()).collect();
        for path in [
            format!("/ui/settings?said={value}"),
            format!("/ui/webhooks/{value}/edit"),
            format!("/ui/keys/{value}"),
            format!("/ui/login?next={value}"),
        ] {
            let page = browser.get(&path).await;
            assert!(page.status.as_u16() < 500, "{path}: {page:?}");
            assert!(!page.text.contains("<script>alert"), "{path}");
        }
        for path in [format!("/ui/webhooks/{value}/act"), format!("/ui/keys/{value}/revoke")] {
            let form = [("csrf", csrf.as_str()), ("do", "test"), ("confirmed", "yes")];
            let page = browser.post(&path, &form).await;
            assert!(page.status.as_u16() < 500, "{path}: {page:?}");
        }
    }
    for path in ["/ui/settings", "/ui/keys", "/ui/webhooks"] {
        let page = browser.get(path).await;
        assert!(page.status == 200 && !page.text.contains("<script>alert"), "{path}");
    }
}

#[tokio::test]
async fn who_is_no_admin_sees_the_settings_and_changes_none() {
    let server = Server::file().await;
    for (role, is_offered) in [(Role::Viewer, false), (Role::Operator, false), (Role::Admin, true)]
    {
        let (_, key) = server.make_key(role).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&key).await;
        let page = browser.get("/ui/settings").await;
        assert_eq!(page.text.contains(">Save</button>"), is_offered, "{role}");
        assert_eq!(page.text.contains(" disabled>"), !is_offered, "{role}");
        for path in ["/ui/keys", "/ui/webhooks"] {
            assert_eq!(browser.get(path).await.status == 200, is_offered, "{role} {path}");
        }
    }
}
