//! The overview, and what all pages share.

use serde_json::json;

use crate::support::browser::{Browser, ODD};
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(the_overview_tells_what_waits_and_why, a_run_is_started_and_drained_by_buttons);

async fn the_overview_tells_what_waits_and_why(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let empty = browser.get("/ui").await;
    assert!(empty.text.contains("First steps"), "{}", empty.text);
    let order = json!({
        "from": "2025-01-01", "to": "2025-01-03", "media_types": ["all"],
        "languages": [["pt"]], "queue": true,
    });
    server.post("/missions", &order).await.expect(201);
    let page = browser.get("/ui").await;
    assert_eq!(page.status, 200);
    for text in [
        "Missions wait in the queue and nothing runs them",
        "the run to be started",
        "3 missions",
        "href=\"/ui/missions?state=queued\"><b>3</b>",
        "mission_queued",
    ] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
}

async fn a_run_is_started_and_drained_by_buttons(place: Place) {
    let server = Server::on(place).await;
    server.tasks.declare(vec!["fleet".into()]).await.unwrap();
    let mut browser = Browser::new(&server);
    let drained = browser.submit("/ui", "/ui/run", &[("do", "drain")]).await;
    assert_eq!(drained.status, 409, "nothing runs: {drained:?}");
    assert!(drained.text.contains("the fleet does not run"), "{}", drained.text);
    let started = browser.submit("/ui", "/ui/run", &[("do", "start")]).await;
    assert_eq!(started.header("location"), Some("/ui?said=The+run+has+started."));
    let again = browser.submit("/ui", "/ui/run", &[("do", "start")]).await;
    assert_eq!(again.header("location"), Some("/ui?said=It+is+running+already."));
    let runs = server.get("/tasks?type=fleet").await.expect(200);
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_is_in_the_language_that_the_browser_wants() {
    let server = Server::file().await;
    let browser = Browser::new(&server);
    for (wanted, tag, heading) in [
        ("pt-BR,pt;q=0.9", "pt-BR", "Visão geral"),
        ("en", "en", "Overview"),
        ("de", "en", "Overview"),
    ] {
        let request = browser.request(reqwest::Method::GET, "/ui");
        let page = server.send(request.header("Accept-Language", wanted)).await;
        assert!(page.text.contains(&format!("<html lang=\"{tag}\"")), "{wanted}: {}", page.text);
        assert!(page.text.contains(&format!("<h1>{heading}</h1>")), "{wanted}: {}", page.text);
    }
}

#[tokio::test]
async fn preferences_are_kept_and_send_nobody_elsewhere() {
    let server = Server::file().await;
    let mut browser = Browser::new(&server);
    for (back, place) in
        [("/ui/missions?state=bank", "/ui/missions?state=bank"), ("//evil.example", "/ui")]
    {
        let form = [("theme", "dark"), ("language", "pt-BR"), ("back", back)];
        let answer = browser.submit("/ui", "/ui/preferences", &form).await;
        assert_eq!(answer.header("location"), Some(place));
    }
    let page = browser.get("/ui").await;
    assert!(page.text.contains("<html lang=\"pt-BR\" data-theme=\"dark\""), "{}", page.text);
    for odd in ODD.iter().filter(|odd| !odd.contains('\0')) {
        let form = [("theme", *odd), ("language", odd), ("back", odd)];
        let answer = browser.submit("/ui", "/ui/preferences", &form).await;
        assert_eq!(answer.header("location"), Some("/ui"), "{odd:?}");
    }
    let answer = browser.submit("/ui", "/ui/preferences", &[("theme", "\0")]).await;
    assert_eq!(answer.status, 422, "{answer:?}");
}

#[tokio::test]
async fn an_address_that_is_none_is_explained_on_a_page() {
    let server = Server::file().await;
    let mut browser = Browser::new(&server);
    for path in ["/ui/nowhere", "/ui/missions/mis_0", "/ui/missions/%00", "/ui/missions/a%22b"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 404, "{path}: {page:?}");
        assert!(page.header("content-type").unwrap().starts_with("text/html"), "{path}");
        assert!(page.text.contains("There is nothing here"), "{path}: {}", page.text);
    }
}

#[tokio::test]
async fn style_and_script_are_kept_by_browsers_and_named_by_their_content() {
    let server = Server::file().await;
    let mut browser = Browser::new(&server);
    let page = browser.get("/ui").await;
    let mut found = 0;
    for path in page.text.split('"').filter(|text| text.starts_with("/assets/")) {
        let asset = server.get(path).await;
        assert_eq!(asset.status, 200, "{path}");
        let keeping = asset.header("cache-control").unwrap();
        assert!(keeping.contains("immutable"), "{path}: {keeping}");
        found += 1;
    }
    assert!(found >= 3, "{found}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    for forbidden in ["style=", "onclick=", "javascript:"] {
        assert!(!page.text.contains(forbidden), "{forbidden}");
    }
}
