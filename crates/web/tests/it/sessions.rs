//! People: a key for a cookie, forms with a token, and the end of a session.

use jiff::SignedDuration;
use lavra_web::App;
use lavra_web::access::Role;
use reqwest::Method;
use serde_json::json;

use crate::support::access::id_of;
use crate::support::browser::{Browser, filled, token};
use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    a_key_is_traded_for_a_cookie_and_given_back,
    a_session_survives_a_restart,
    a_session_ends_with_its_key,
    a_session_ends_when_nobody_uses_it_and_after_a_week,
);

async fn closed(place: Place) -> Server {
    Server::shaped(place, |app| App { require_key: true, ..app }).await
}

async fn a_key_is_traded_for_a_cookie_and_given_back(place: Place) {
    let server = closed(place).await;
    let operator = server.put_key(Role::Operator).await;
    let mut browser = Browser::new(&server);
    let sent = browser.get("/ui/missions?status=failed").await;
    assert_eq!(sent.status, 303);
    let way = sent.header("location").unwrap();
    assert_eq!(way, "/ui/login?next=%2Fui%2Fmissions%3Fstatus%3Dfailed");
    let page = browser.get(way).await;
    assert!(page.text.contains("value=\"/ui/missions?status=failed\""), "{page:?}");

    let entered = browser.log_in(&operator).await;
    assert_eq!((entered.status.as_u16(), entered.header("location")), (303, Some("/ui/missions")));
    let cookie = entered.header("set-cookie").unwrap();
    for part in
        ["lavra_session=", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=604800"]
    {
        assert!(cookie.contains(part), "{cookie}");
    }
    let value = browser.cookies.last().unwrap().split_once('=').unwrap().1.to_owned();
    let stored = server.database.ask("SELECT * FROM lavra.sessions", 9).await.unwrap();
    assert_eq!(stored.rows.len(), 1);
    assert!(!json!(stored.rows).to_string().contains(&value), "the cookie itself is stored");

    browser.get("/tasks").await.expect(200);
    browser.get("/keys").await.problem(403, "role_needed");
    let order = json!({"type": KIND});
    let post = browser.request(Method::POST, "/tasks").json(&order);
    browser.send(post).await.problem(403, "csrf");
    let post = browser.request(Method::POST, "/tasks").json(&order);
    browser.send(post.header("X-CSRF-Token", "wrong")).await.problem(403, "csrf");
    let post = browser.request(Method::POST, "/tasks").json(&order);
    browser.send(post.header("X-CSRF-Token", browser.token())).await.expect(201);
    // Who is in needs no login page.
    assert_eq!(browser.get("/ui/login").await.status, 303);

    browser.post("/ui/logout", &[]).await.problem(403, "csrf");
    let token = browser.token();
    let left = browser.post("/ui/logout", &[("csrf", &token)]).await;
    assert_eq!((left.status.as_u16(), left.header("location")), (303, Some("/ui/login")));
    assert!(!browser.has_session());
    browser.cookies.push(format!("lavra_session={value}"));
    browser.get("/tasks").await.problem(401, "unauthenticated");
}

async fn a_session_survives_a_restart(place: Place) {
    let server = closed(place).await;
    let viewer = server.put_key(Role::Viewer).await;
    let mut browser = Browser::new(&server);
    browser.log_in(&viewer).await;
    browser.get("/tasks").await.expect(200);
    let server = closed(server.end().await).await;
    browser.client = Browser::new(&server).client;
    browser.get("/tasks").await.expect(200);
}

async fn a_session_ends_with_its_key(place: Place) {
    let server = closed(place).await;
    let viewer = server.put_key(Role::Viewer).await;
    let id = id_of(&viewer);
    let admin = server.put_key(Role::Admin).await;
    let mut browser = Browser::new(&server);
    browser.log_in(&viewer).await;
    browser.get("/tasks").await.expect(200);
    let revoke = server.request(Method::DELETE, &format!("/keys/{id}")).bearer_auth(admin);
    server.send(revoke).await.expect(200);
    browser.get("/tasks").await.problem(401, "unauthenticated");
    let page = browser.get("/ui/missions").await;
    assert_eq!(page.status, 303, "{page:?}");
    browser.get("/ui/login").await;
    assert!(!browser.has_session(), "a cookie that is worth nothing stays");

    let hour = SignedDuration::from_hours(1);
    server.key_of_the_past("expired1", Role::Viewer, hour).await;
    let none = SignedDuration::ZERO;
    browser.cookies.push(server.session_of_the_past("expired1", none, none).await);
    browser.get("/tasks").await.problem(401, "unauthenticated");
}

async fn a_session_ends_when_nobody_uses_it_and_after_a_week(place: Place) {
    let server = closed(place).await;
    let viewer = server.put_key(Role::Viewer).await;
    let id = id_of(&viewer);
    let hours = SignedDuration::from_hours;
    for (opened, seen, is_open) in
        [(13, 11, true), (13, 12, false), (167, 0, true), (168, 0, false)]
    {
        let mut browser = Browser::new(&server);
        browser.cookies.push(server.session_of_the_past(id, hours(opened), hours(seen)).await);
        let status = browser.get("/tasks").await.status.as_u16();
        assert_eq!(status, if is_open { 200 } else { 401 }, "{opened} {seen}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_told_on_the_page_and_counted() {
    let server = closed(Place::file()).await;
    let writer = server.put_key(Role::Writer).await;
    let mut browser = Browser::new(&server);
    let reply = browser.log_in(&writer).await;
    assert_eq!(reply.status, 403);
    assert!(reply.text.contains("is for programs"), "{reply:?}");
    for _ in 0..10 {
        let reply = browser.log_in("lavra_<script>").await;
        assert_eq!(reply.status, 401);
        assert!(reply.text.contains("that is no key") && !reply.text.contains("<script"));
    }
    let reply = browser.log_in("lavra_x").await;
    assert_eq!(reply.status, 429, "{reply:?}");
    assert!(reply.header("retry-after").is_some());
    assert!(!browser.has_session());
}

/// Two tabs show the form; the second is sent when the first has logged in.
#[tokio::test]
async fn a_form_of_before_the_login_is_taken_after_it() {
    let server = closed(Place::file()).await;
    let viewer = server.put_key(Role::Viewer).await;
    let mut browser = Browser::new(&server);
    let second = token(&browser.get("/ui/login").await);
    assert_eq!(browser.log_in(&viewer).await.status, 303);
    assert!(browser.has_session());
    let form = [("csrf", second.as_str()), ("next", "/ui"), ("key", &viewer)];
    assert_eq!(browser.post("/ui/login", &form).await.status, 303);
}

#[tokio::test]
async fn the_login_page_leads_nowhere_else_and_takes_only_its_own_form() {
    let server = closed(Place::file()).await;
    let viewer = server.put_key(Role::Viewer).await;
    let mut browser = Browser::new(&server);
    for next in ["//evil.example", "https://evil.example", "/\\evil.example", "/ui%0d%0aX:%20y"] {
        let page = browser.get(&format!("/ui/login?next={next}")).await;
        assert!(page.text.contains("name=\"next\" value=\"/ui\""), "{next}: {page:?}");
        let token = token(&page);
        let form = [("csrf", token.as_str()), ("next", next), ("key", &viewer)];
        let reply = Browser { client: browser.client.clone(), cookies: browser.cookies.clone() }
            .post("/ui/login", &form)
            .await;
        assert_eq!(reply.header("location"), Some("/ui"), "{next}");
    }
    let form = [("key", viewer.as_str())];
    browser.post("/ui/login", &form).await.problem(403, "csrf");
    let form = [("key", viewer.as_str()), ("csrf", "0")];
    browser.post("/ui/login", &form).await.problem(403, "csrf");
    // The token of another visit.
    let page = Browser::new(&server).get("/ui/login").await;
    let (token, mut other) = (token(&page), Browser::new(&server));
    other.get("/ui/login").await;
    other.post("/ui/login", &[("key", &viewer), ("csrf", &token)]).await.problem(403, "csrf");
    let request = browser.request(Method::POST, "/ui/login").json(&json!({"key": viewer}));
    browser.send(request).await.problem(403, "csrf");
    assert!(!browser.has_session());
}

#[tokio::test]
async fn a_page_tells_the_browser_what_it_may_load() {
    let server = closed(Place::file()).await;
    let page = server.get("/ui/login").await;
    let policy = page.header("content-security-policy").unwrap();
    assert_eq!(
        policy,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
}

#[tokio::test]
async fn by_https_cookies_stay_there() {
    let server = Server::shaped(Place::file(), |app| App {
        public_url: Some("https://lavra.example".parse().unwrap()),
        ..app
    })
    .await;
    let page = server.get("/ui/login").await;
    let cookie = page.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-lavra_visit=") && cookie.ends_with("; Secure"), "{cookie}");
}

#[tokio::test]
async fn scripts_get_the_problem_and_a_link_from_elsewhere_starts_again() {
    let server = closed(Place::file()).await;
    let browser = Browser::new(&server);
    let get = || browser.request(Method::GET, "/ui/missions?a=%22b");
    let script = get().header("Sec-Fetch-Mode", "cors");
    browser.client.send(script).await.problem(401, "unauthenticated");
    let stream = browser.client.request(Method::GET, "/ui/live");
    let stream = stream.header("Accept", "text/event-stream");
    browser.client.send(stream).await.problem(401, "unauthenticated");
    let link = get().header("Sec-Fetch-Mode", "navigate").header("Sec-Fetch-Site", "cross-site");
    let reply = browser.client.send(link).await;
    assert_eq!(reply.status, 200);
    assert!(reply.text.contains("content=\"0;url=/ui/missions?a=%22b\""), "{reply:?}");
    assert!(reply.header("set-cookie").is_none(), "it would end the forms of other pages");
    // Who was in the middle of something when the session ended is shown where to go on.
    let form = filled(browser.request(Method::POST, "/ui/missions"), &[("a", "b")]);
    let reply = browser.client.send(form).await;
    assert_eq!((reply.status.as_u16(), reply.header("location")), (303, Some("/ui/login")));
}

#[tokio::test]
async fn a_visitor_of_this_machine_has_a_token_too() {
    let server = Server::file().await;
    let mut browser = Browser::new(&server);
    let page = browser.get("/ui/login").await;
    assert!(page.header("set-cookie").unwrap().starts_with("lavra_visit="), "{page:?}");
    assert_eq!(browser.get("/ui/login").await.header("set-cookie"), None, "one is enough");
    browser.post("/ui/logout", &[("csrf", "0")]).await.problem(403, "csrf");
    let token = token(&page);
    let left = browser.post("/ui/logout", &[("csrf", &token)]).await;
    assert_eq!(left.status, 303);
    let by_header = browser.request(Method::POST, "/ui/logout").header("X-CSRF-Token", &token);
    assert_eq!(browser.send(by_header).await.status, 303);
    let large = filled(browser.request(Method::POST, "/ui/logout"), &[("a", &"x".repeat(1 << 20))]);
    browser.send(large).await.problem(413, "body_too_large");
}
