//! Every form of Mission Control, as nobody would fill it in: refused or taken, and never a failure of the
//! server, a way elsewhere, or a script that comes back.

use std::collections::BTreeMap;

use lavra_tasks::model::DeadLetterId;
use lavra_tasks::store::DeadLetter;
use lavra_web::access::Role;
use reqwest::Method;
use serde_json::json;

use super::extractions::furnished;
use crate::support::browser::{Browser, token};
use crate::support::form::{Form, forms};
use crate::support::odd::{self, Odd, shown};
use crate::support::server::KIND;
use crate::support::storm::Storm;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(five_hundred_odd_inputs_into_every_form_break_nothing);

/// How many odd inputs each form gets at least.
const LEAST: usize = 500;

/// Where the forms lead that change something, ids as `*`: each is found on some page, and there are no others.
const ACTIONS: &[&str] = &[
    "/ui/dead-letters/act",
    "/ui/extractions/new",
    "/ui/extractions/pncp/order",
    "/ui/keys",
    "/ui/keys/*/revoke",
    "/ui/login",
    "/ui/logout",
    "/ui/missions/*/copy",
    "/ui/missions/act",
    "/ui/missions/import",
    "/ui/missions/new",
    "/ui/preferences",
    "/ui/proxies/*/act",
    "/ui/proxies/*/edit",
    "/ui/proxies/new",
    "/ui/run",
    "/ui/schedules/act",
    "/ui/schedules/edit",
    "/ui/settings",
    "/ui/tasks/*/act",
    "/ui/tasks/new",
    "/ui/webhooks/*/act",
    "/ui/webhooks/*/edit",
    "/ui/webhooks/new",
    "/ui/workers/*/act",
    "/ui/workers/*/edit",
    "/ui/workers/new",
    "/ui/writers/*/act",
    "/ui/writers/*/edit",
    "/ui/writers/new",
];

/// A server with one of everything that has a form, and the pages that have them.
async fn site(place: Place) -> (Server, Vec<String>, Vec<String>) {
    let server = furnished(place).await;
    server.tasks.declare(vec!["fleet".into()]).await.unwrap();
    let order = json!({
        "from": "2025-01-01", "to": "2025-01-02", "media_types": ["all"], "languages": [["pt"]],
    });
    let missions = server.post("/missions", &order).await.expect(201);
    let task = server.post("/tasks", &json!({ "type": KIND, "payload": {} })).await.expect(201);
    let mut ids = vec![missions["added"][0].clone(), task["id"].clone()];
    let url = "http://127.0.0.1:1";
    let (worker, writer) = (
        json!({ "name": "w", "url": url, "api_key": "k", "storage_domain": "s.example" }),
        json!({ "name": "r", "url": url, "api_key": "k" }),
    );
    let proxy = json!({ "name": "p", "host": "127.0.0.1", "port": 1 });
    let hook = json!({ "name": "h", "url": url, "secret": "a-long-random-text" });
    for (path, body) in [
        ("/fleet/workers", worker),
        ("/fleet/proxies", proxy),
        ("/fleet/writers", writer),
        ("/webhooks", hook),
    ] {
        ids.push(server.post(path, &body).await.expect(201)["id"].clone());
    }
    let cron = json!({ "type": KIND, "cron": "17 3 * * *", "payload": {} });
    let put = server.request(Method::PUT, "/schedules/nightly").json(&cron);
    assert!(server.send(put).await.status.is_success());
    let store = server.tasks.store();
    let letter = DeadLetter {
        id: DeadLetterId(store.clock().new_id()),
        task_id: None,
        kind: None,
        reason: "it is no JSON".into(),
        body: Some("<script>alert(1)</script>".into()),
        created_at: store.clock().now(),
    };
    store.bury(letter).await.unwrap();
    server.make_key(Role::Viewer).await;

    let ids: Vec<String> = ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    let [mission, task, worker, proxy, writer, hook] = ids.as_slice() else { panic!("{ids:?}") };
    let mut pages: Vec<String> = [
        "/ui",
        "/ui/missions",
        "/ui/missions/new",
        "/ui/extractions",
        "/ui/extractions/new",
        "/ui/extractions/new?other=yes",
        "/ui/extractions/pncp",
        "/ui/extractions/pncp/order",
        "/ui/extractions/pncp/contratos_publicacao_2024-01-01",
        "/ui/tasks",
        "/ui/tasks/new",
        "/ui/dead-letters",
        "/ui/schedules",
        "/ui/schedules/edit",
        "/ui/schedules/edit?name=nightly",
        "/ui/audit",
        "/ui/audit/timeline",
        "/ui/audit/failures",
        "/ui/audit/workers",
        "/ui/audit/proxies",
        "/ui/settings",
        "/ui/keys",
        "/ui/webhooks",
        "/ui/webhooks/new",
        "/ui/login",
    ]
    .map(str::to_owned)
    .to_vec();
    pages.extend([
        format!("/ui/missions/{mission}"),
        format!("/ui/tasks/{task}"),
        format!("/ui/webhooks/{hook}/edit"),
    ]);
    for (kind, id) in [("workers", worker), ("proxies", proxy), ("writers", writer)] {
        pages.extend([
            format!("/ui/{kind}"),
            format!("/ui/{kind}/new"),
            format!("/ui/{kind}/{id}/edit"),
        ]);
    }
    pages.push(format!("/ui/workers/{worker}"));
    (server, pages, ids)
}

/// Each form of the site once, by where it leads and what it asks for.
async fn all_forms(browser: &mut Browser, pages: &[String]) -> BTreeMap<String, Form> {
    let mut found = BTreeMap::new();
    for path in pages {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        for form in forms(&page) {
            let name = format!("{} {}", form.action, form.names().join(" "));
            found.entry(name).or_insert(form);
        }
    }
    found
}

/// A form as it is sent: what it says, and as which type.
struct Sent {
    text: String,
    kind: &'static str,
}

const USUAL: &str = "application/x-www-form-urlencoded";

fn sent(token: &str, fields: &[(String, String)]) -> Sent {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    text.append_pair("csrf", token).extend_pairs(fields);
    Sent { text: text.finish(), kind: USUAL }
}

/// Each odd text in each field, then what is wrong in several ways at once.
fn odd_ones(name: &str, form: &Form, token: &str) -> Vec<Sent> {
    let with = |field: &str, text: &str| {
        let mut fields = form.fields.clone();
        fields.retain(|(name, _)| name != field);
        fields.push((field.to_owned(), text.to_owned()));
        sent(token, &fields)
    };
    let (names, texts) = (form.names(), odd::texts());
    let each = names.iter().flat_map(|name| texts.iter().map(|text| with(name, text)));
    let mut all: Vec<Sent> = each.collect();
    let mut odd = Odd::new(name);
    for number in 0..LEAST.saturating_sub(all.len()).max(LEAST / 5) {
        let mut fields = form.fields.clone();
        let place = odd.below(fields.len());
        match number % 6 {
            // All of it is odd.
            0 => fields.iter_mut().for_each(|(_, value)| *value = odd.text()),
            // Something is missing.
            1 if !fields.is_empty() => drop(fields.remove(place)),
            // Something stands several times.
            2 if !fields.is_empty() => {
                let name = fields[place].0.clone();
                fields.extend((0..=odd.below(50)).map(|_| (name.clone(), odd.text())));
            }
            // Something is of another form.
            3 => fields.extend([(odd.text(), odd.text()), ("id".into(), odd.text())]),
            // Something is cut off, or of another type.
            4 => {
                let whole = sent(token, &fields).text;
                let end = odd.below(whole.len());
                let tail = ["%", "%f", "%zz", "%ff%fe", "&&&==", "[]=1", "{", "+"][odd.below(8)];
                let kinds = [USUAL, "application/json", "multipart/form-data", "text/plain", "?"];
                let kind = kinds[odd.below(kinds.len())];
                all.push(Sent { text: format!("{}{tail}", &whole[..end]), kind });
                continue;
            }
            _ => fields.push(("more".into(), odd.text())),
        }
        all.push(sent(token, &fields));
    }
    all
}

async fn five_hundred_odd_inputs_into_every_form_break_nothing(place: Place) {
    let (server, pages, ids) = site(place).await;
    let mut browser = Browser::new(&server);
    let mut found = all_forms(&mut browser, &pages).await;
    let visit = token(&browser.get("/ui").await);
    // Who has logged in may log out.
    let (_, key) = server.make_key(Role::Operator).await;
    let mut person = Browser::new(&server);
    person.log_in(&key).await;
    let of_person = all_forms(&mut person, &["/ui".to_owned()]).await;
    found.extend(of_person.into_iter().filter(|(_, form)| form.action == "/ui/logout"));

    let mut actions: Vec<String> =
        found.values().filter(|form| form.is_post).map(|form| form.action.clone()).collect();
    for action in &mut actions {
        let mut parts: Vec<&str> = action.split('/').collect();
        if let [_, _, "keys", id, _] = parts.as_mut_slice() {
            *id = "*";
        }
        for part in &mut parts {
            if ids.iter().any(|id| id == part) {
                *part = "*";
            }
        }
        *action = parts.join("/");
    }
    actions.sort();
    actions.dedup();
    assert_eq!(actions, ACTIONS);

    let mut storm = Storm::default();
    let forms = found.len();
    for (name, form) in found {
        let (who, token) = match form.action.as_str() {
            "/ui/logout" => (&person, person.token()),
            _ => (&browser, visit.clone()),
        };
        let odd = odd_ones(&name, &form, &token);
        assert!(odd.len() >= LEAST, "{name}: {}", odd.len());
        for Sent { text, kind } in odd {
            let what = format!("{name}: {}", shown(&text));
            let request = if form.is_post {
                who.request(Method::POST, &form.action).header("Content-Type", kind).body(text)
            } else {
                // A query is the beginning of a request, which no browser makes that long.
                let end = text.len().min(8_000);
                who.request(Method::GET, &format!("{}?{}", form.action, &text[..end]))
            };
            storm.send(request, what).await;
        }
    }
    storm.end(forms * LEAST).await;
    for path in &pages {
        let page = browser.get(path).await;
        assert!(page.status.as_u16() < 500, "{path}: {page:?}");
        assert!(!page.text.contains("<script>alert"), "{path}");
    }
}
