//! Workers, proxies and writers: added, changed, tested, removed, and looked at.

use lavra_fleet::machine::Step;
use lavra_fleet::model::{EventKind, ProxyId};
use lavra_web::access::Role;
use serde_json::{Value, json};

use super::store::{entry, fleet, log};
use crate::support::browser::{Browser, ODD, token};
use crate::support::{Place, Reply, Server, on_each_engine};

on_each_engine!(
    each_kind_is_added_changed_and_removed_by_forms,
    what_is_typed_wrong_stays_but_for_the_secret,
    a_worker_s_page_has_its_missions_and_its_log,
    a_proxy_that_failed_too_often_is_reactivated,
    a_proxy_shows_how_its_last_sessions_went,
    odd_forms_are_no_fault_of_the_server,
);

const MARKER: &str = "MARKER-SECRET";

fn form_of(kind: &str, name: &'static str) -> Vec<(&'static str, &'static str)> {
    match kind {
        "workers" => vec![
            ("name", name),
            ("url", "http://127.0.0.1:1/w"),
            ("storage_domain", "storage.example.com"),
            ("api_key", MARKER),
        ],
        "proxies" => vec![
            ("name", name),
            ("host", "127.0.0.1"),
            ("port", "1"),
            ("username", "ana"),
            ("password", MARKER),
        ],
        _ => vec![("name", name), ("url", "http://127.0.0.1:1/r"), ("api_key", MARKER)],
    }
}

async fn id_of(server: &Server, kind: &str, name: &str) -> String {
    let all = server.get(&format!("/fleet/{kind}")).await.expect(200);
    let found = all["items"].as_array().unwrap().iter().find(|it| it["name"] == name);
    found.unwrap()["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn said(reply: &Reply) -> String {
    let place = reply.header("location").unwrap_or_else(|| panic!("{reply:?}"));
    let (_, query) = place.split_once('?').unwrap();
    let said = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "said");
    said.unwrap().1.into_owned()
}

async fn each_kind_is_added_changed_and_removed_by_forms(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    for kind in ["workers", "proxies", "writers"] {
        let list = format!("/ui/{kind}");
        let empty = browser.get(&list).await;
        assert!(empty.text.contains(&format!("{list}/new")), "the next step: {}", empty.text);
        let new = format!("{list}/new");
        let added = browser.submit(&new, &new, &form_of(kind, "one")).await;
        assert_eq!((added.status.as_u16(), said(&added)), (303, "Added: one".to_owned()));
        let page = browser.get(&list).await;
        assert!(page.text.contains(">one</a>") && page.text.contains("127.0.0.1:1"), "{kind}");
        assert!(page.text.contains("never tested"), "{kind}: {}", page.text);

        let id = id_of(&server, kind, "one").await;
        let edit = format!("{list}/{id}/edit");
        let page = browser.get(&edit).await;
        assert!(page.text.contains("value=\"one\"") && !page.text.contains(MARKER), "{kind}");
        let mut form = form_of(kind, "two");
        let secret = form.last_mut().unwrap();
        secret.1 = "";
        let saved = browser.submit(&edit, &edit, &form).await;
        assert_eq!(said(&saved), "Saved: two", "{kind}");

        let act = format!("{list}/{id}/act");
        let tested = browser.submit(&list, &act, &[("do", "test")]).await;
        assert!(said(&tested).starts_with("two did not answer"), "{kind}: {tested:?}");
        assert!(browser.get(&list).await.text.contains("does not answer"), "{kind}");
        let off = browser.submit(&list, &act, &[("do", "deactivate")]).await;
        assert_eq!(said(&off), "Deactivated: two", "{kind}");
        assert!(browser.get(&list).await.text.contains(">Deactivated</span>"), "{kind}");
        let on = browser.submit(&list, &act, &[("do", "activate")]).await;
        assert_eq!(said(&on), "Activated: two", "{kind}");

        let asked = browser.submit(&list, &act, &[("do", "remove")]).await;
        assert!(asked.text.contains("Are you sure?") && asked.text.contains(">two"), "{kind}");
        assert!(browser.get(&list).await.text.contains(">two</a>"), "{kind}: only asked");
        let gone = browser.submit(&list, &act, &[("do", "remove"), ("confirmed", "yes")]).await;
        assert_eq!(said(&gone), "Removed: two", "{kind}");
        assert!(!browser.get(&list).await.text.contains(">two</a>"), "{kind}");
        assert_eq!(browser.get(&edit).await.status, 404);
    }
}

async fn what_is_typed_wrong_stays_but_for_the_secret(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let new = "/ui/workers/new";
    let form =
        [("name", "w"), ("url", "ftp://x"), ("api_key", MARKER), ("storage_domain", "s.example")];
    let page = browser.submit(new, new, &form).await;
    assert_eq!(page.status, 422, "{page:?}");
    for kept in ["role=\"alert\"", "value=\"w\"", "value=\"ftp://x\"", "value=\"s.example\""] {
        assert!(page.text.contains(kept), "{kept}: {}", page.text);
    }
    assert!(!page.text.contains(MARKER));
    let new = "/ui/proxies/new";
    for port in ["70000", "x", "-1"] {
        let form = [("name", "p"), ("host", "h.example"), ("port", port)];
        let page = browser.submit(new, new, &form).await;
        assert_eq!(page.status, 422, "{port}");
        assert!(page.text.contains("65535") && page.text.contains("value=\"h.example\""));
    }
    let form = [("name", "p"), ("host", "h.example"), ("username", "ana")];
    browser.submit(new, new, &form).await;
    let twice = browser.submit(new, new, &form).await;
    assert_eq!(twice.status, 422, "the name is taken");
    let id = id_of(&server, "proxies", "p").await;
    let edit = format!("/ui/proxies/{id}/edit");
    let emptied = browser.submit(&edit, &edit, &[("name", "p"), ("host", "h.example")]).await;
    assert_eq!(emptied.status, 422);
    assert!(emptied.text.contains("cannot be emptied"), "{}", emptied.text);
    let proxies = server.get("/fleet/proxies").await.expect(200);
    assert_eq!(proxies["items"][0]["username"], "ana");
}

async fn a_worker_s_page_has_its_missions_and_its_log(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    browser.submit("/ui/workers/new", "/ui/workers/new", &form_of("workers", "w")).await;
    let id = id_of(&server, "workers", "w").await;
    let path = format!("/ui/workers/{id}");
    let page = browser.get(&path).await;
    assert_eq!(page.status, 200);
    for text in ["has had no mission yet", "Nothing has happened to this worker yet", "<code>wrk_"]
    {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    let now = server.now();
    let done = json!({ "worker_id": id, "duration_ms": 90_000 });
    let failed = json!({ "worker_id": id, "error_code": "ERROR200", "error_message": "no luck" });
    let other = json!({ "worker_id": "wrk_other", "error_message": "not mine" });
    log(
        &server,
        vec![
            entry(None, EventKind::ScrapeCompleted, done, now),
            entry(None, EventKind::ScrapeFailed, failed, now),
            entry(None, EventKind::ScrapeFailed, other, now),
        ],
    )
    .await;
    let page = browser.get(&path).await;
    for text in ["no luck", "href=\"/ui/help/errors#ERROR200\"", "1 min 30 s"] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    assert!(!page.text.contains("not mine"));
    let list = browser.get("/ui/workers").await;
    assert!(list.text.contains("1 completed") && list.text.contains("1 failed"), "{}", list.text);
    // The tiles are filters.
    assert!(browser.get("/ui/workers?state=idle").await.text.contains(">w</a>"));
    let none = browser.get("/ui/workers?state=error").await;
    assert!(none.text.contains("None in this state") && !none.text.contains(">w</a>"));
    assert_eq!(browser.get("/ui/workers/wrk_0").await.status, 404);
}

async fn a_proxy_that_failed_too_often_is_reactivated(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    browser.submit("/ui/proxies/new", "/ui/proxies/new", &form_of("proxies", "p")).await;
    let id = id_of(&server, "proxies", "p").await;
    for _ in 0..3 {
        let blamed = Some((ProxyId(id.clone()), 3));
        let step = Step { blamed, ..Step::default() };
        assert_eq!(fleet(&server).apply(vec![step]).await.unwrap(), [true]);
    }
    let page = browser.get("/ui/proxies?state=failed").await;
    for text in [">p</a>", "Deactivated by failures", "3 of 3", "Reactivate"] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    let act = format!("/ui/proxies/{id}/act");
    browser.submit("/ui/proxies", &act, &[("do", "activate")]).await;
    let page = browser.get("/ui/proxies").await;
    assert!(page.text.contains("0 of 3") && page.text.contains(">Free</span>"), "{}", page.text);
}

async fn a_proxy_shows_how_its_last_sessions_went(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    browser.submit("/ui/proxies/new", "/ui/proxies/new", &form_of("proxies", "p")).await;
    assert!(browser.get("/ui/proxies").await.text.contains("none yet"));
    let now = server.now();
    let (good, bad) = (EventKind::SessionReady, EventKind::SessionFailed);
    let logs = [good, bad, good].map(|event| entry(None, event, json!({ "proxy_name": "p" }), now));
    log(&server, logs.into()).await;
    let page = browser.get("/ui/proxies").await;
    assert!(page.text.contains("Last sessions: 2 good of 3"), "{}", page.text);
    assert_eq!(page.text.matches("<rect").count(), 3);
}

/// As someone may send them who is not a browser; and what gets in comes out as text.
async fn odd_forms_are_no_fault_of_the_server(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    for kind in ["workers", "proxies", "writers"] {
        let new = format!("/ui/{kind}/new");
        let mut form = form_of(kind, "<script>alert(1)</script>");
        let odd_name = browser.submit(&new, &new, &form).await;
        assert_eq!(odd_name.status, 303, "{kind}: {odd_name:?}");
        let id = id_of(&server, kind, "<script>alert(1)</script>").await;
        let long = "x".repeat(10_000);
        let odd: Vec<&str> = ODD.iter().copied().chain([long.as_str()]).collect();
        let csrf = token(&browser.get(&new).await);
        let encoded = |text: &str| -> String {
            url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
        };
        for odd in &odd {
            for place in 0..form.len() {
                let mut changed: Vec<(&str, &str)> = form.clone();
                changed[place].1 = odd;
                changed.push(("csrf", csrf.as_str()));
                for action in [new.clone(), format!("/ui/{kind}/{id}/edit")] {
                    let page = browser.post(&action, &changed).await;
                    let what = changed[place].0;
                    assert!(page.status.as_u16() < 500, "{action} {what}={odd:?}: {page:?}");
                    assert!(!page.text.contains("<script>alert"), "{action} {what}={odd:?}");
                }
            }
            for (name, value) in [("do", *odd), ("back", odd), ("confirmed", odd)] {
                let form = [("csrf", csrf.as_str()), ("do", "deactivate"), (name, value)];
                let form = if name == "do" { &form[..1] } else { &form[..] };
                let page = browser.post(&format!("/ui/{kind}/{id}/act"), form).await;
                assert!(page.status.as_u16() < 500, "{name}={odd:?}: {page:?}");
                let place = page.header("location").unwrap_or("/ui");
                assert!(place.starts_with("/ui"), "{place}");
            }
            for path in [
                format!("/ui/{kind}?state={}", encoded(odd)),
                format!("/ui/{kind}?after={}", encoded(odd)),
                format!("/ui/{kind}?said={}", encoded(odd)),
                format!("/ui/{kind}/{}", encoded(odd)),
                format!("/ui/{kind}/{}/edit", encoded(odd)),
            ] {
                let page = browser.get(&path).await;
                assert!(page.status.as_u16() < 500, "{path}: {page:?}");
                assert!(!page.text.contains("<script>alert"), "{path}");
            }
        }
        form.clear();
    }
    for path in ["/ui/workers", "/ui/proxies", "/ui/writers", "/ui/audit", "/ui"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200);
        assert!(!page.text.contains("<script>alert"), "{path}");
    }
}

#[tokio::test]
async fn who_is_no_admin_is_offered_no_change() {
    let server = Server::file().await;
    let mut admin = Browser::new(&server);
    for kind in ["workers", "proxies", "writers"] {
        let new = format!("/ui/{kind}/new");
        admin.submit(&new, &new, &form_of(kind, "one")).await;
    }
    let worker = id_of(&server, "workers", "one").await;
    for (role, is_offered) in [(Role::Viewer, false), (Role::Operator, false), (Role::Admin, true)]
    {
        let (_, key) = server.make_key(role).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&key).await;
        let one = format!("/ui/workers/{worker}");
        for path in ["/ui/workers", "/ui/proxies", "/ui/writers", &one] {
            let page = browser.get(path).await;
            assert_eq!(page.status, 200, "{role} {path}");
            let offers = page.text.contains("/act\"") || page.text.contains("/new\"");
            assert_eq!(offers, is_offered, "{role} {path}");
        }
        let csrf = browser.token();
        let form = [("csrf", csrf.as_str()), ("do", "deactivate")];
        let answer = browser.post(&format!("/ui/workers/{worker}/act"), &form).await;
        assert_eq!(answer.status == 303, is_offered, "{role}: {answer:?}");
    }
    let all: Value = server.get("/fleet/workers").await.expect(200);
    assert_eq!(all["items"][0]["active"], false, "by the admin");
}
