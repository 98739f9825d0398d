//! Missions: chosen, queued, canceled, made, and looked at.

use lavra_fleet::machine::{Guard, Step};
use lavra_fleet::model::{MissionId, MissionStatus, Waiting};
use lavra_fleet::store::Filter;
use lavra_web::access::Role;
use serde_json::{Value, json};

use super::store::fleet;
use crate::support::browser::{Browser, ODD};
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    missions_are_chosen_and_queued,
    a_cancellation_is_asked_for_twice,
    all_that_match_are_counted_before_it_is_done,
    what_is_searched_for_is_all_that_is_acted_on,
    what_is_typed_wrong_does_not_cost_the_rest,
    a_file_is_imported,
    a_mission_shows_its_timeline_and_can_be_copied,
    odd_addresses_and_odd_forms_are_no_fault_of_the_server,
);

async fn bank(server: &Server, days: u8) -> Vec<String> {
    let order = json!({
        "from": "2025-01-01", "to": format!("2025-01-{days:02}"), "media_types": ["all"],
        "languages": [["pt"]],
    });
    let made = server.post("/missions", &order).await.expect(201);
    let ids = made["added"].as_array().unwrap().iter();
    ids.map(|id| id.as_str().unwrap().to_owned()).collect()
}

async fn counts(server: &Server) -> Value {
    server.get("/fleet").await.expect(200)["counts"].clone()
}

async fn missions_are_chosen_and_queued(place: Place) {
    let server = Server::on(place).await;
    let ids = bank(&server, 4).await;
    let mut browser = Browser::new(&server);
    let list = "/ui/missions?state=bank";
    let page = browser.get(list).await;
    assert!(page.text.contains("Mission bank") && page.text.contains("Add to queue"));
    assert!(ids.iter().all(|id| page.text.contains(id)), "{}", page.text);
    let form = [("do", "queue"), ("state", "bank"), ("id", &ids[0]), ("id", &ids[1])];
    let done = browser.submit(list, "/ui/missions/act", &form).await;
    let back = "/ui/missions?state=bank&said=2+added+to+the+queue";
    assert_eq!(done.header("location"), Some(back), "{done:?}");
    assert_eq!(counts(&server).await["queued"], 2);
    // One of them is in the queue already.
    let form = [("do", "queue"), ("id", &ids[1]), ("id", &ids[2])];
    let done = browser.submit(list, "/ui/missions/act", &form).await;
    let said = done.header("location").unwrap();
    assert!(said.contains("1+added") && said.contains("1+refused"), "{said}");
    let nothing = browser.submit(list, "/ui/missions/act", &[("do", "queue")]).await;
    assert!(nothing.header("location").unwrap().contains("Choose+missions"), "{nothing:?}");
}

async fn a_cancellation_is_asked_for_twice(place: Place) {
    let server = Server::on(place).await;
    let ids = bank(&server, 2).await;
    let mut browser = Browser::new(&server);
    let form = [("do", "cancel"), ("id", ids[0].as_str())];
    let asked = browser.submit("/ui/missions", "/ui/missions/act", &form).await;
    assert_eq!(asked.status, 200);
    assert!(asked.text.contains("Are you sure?") && asked.text.contains("1 mission<"));
    assert_eq!(counts(&server).await["canceled"], 0);
    let form = [("do", "cancel"), ("id", ids[0].as_str()), ("confirmed", "yes")];
    browser.submit("/ui/missions", "/ui/missions/act", &form).await;
    assert_eq!(counts(&server).await["canceled"], 1);
}

async fn all_that_match_are_counted_before_it_is_done(place: Place) {
    let server = Server::on(place).await;
    bank(&server, 20).await;
    let mut browser = Browser::new(&server);
    let form = [("do", "queue"), ("matching", "yes"), ("state", "bank"), ("from", "2025-01-11")];
    let asked = browser.submit("/ui/missions", "/ui/missions/act", &form).await;
    assert!(asked.text.contains("10 missions"), "{}", asked.text);
    assert_eq!(counts(&server).await["queued"], 0);
    let form = [&form[..], &[("confirmed", "yes")]].concat();
    let done = browser.submit("/ui/missions", "/ui/missions/act", &form).await;
    assert!(done.header("location").unwrap().contains("10+added"), "{done:?}");
    assert_eq!(counts(&server).await["queued"], 10);
}

async fn what_is_searched_for_is_all_that_is_acted_on(place: Place) {
    let server = Server::on(place).await;
    let ids = bank(&server, 3).await;
    let store = fleet(&server);
    let of = Filter { ids: vec![MissionId::from(ids[0].as_str())], ..Filter::default() };
    let mut mission = store.missions(&of, None, 1).await.unwrap().remove(0);
    mission.status = MissionStatus::Failed;
    mission.error_message = Some("Timeout at the door".into());
    mission.waiting = Some(Waiting::Writer);
    let step = Step { mission: Some((Guard::Queued, mission)), ..Step::default() };
    assert_eq!(store.apply(vec![step]).await.unwrap(), [true]);
    let mut browser = Browser::new(&server);
    for query in ["q=timeout", "waiting=writer", "q=+TIMEOUT+&state=failed"] {
        let page = browser.get(&format!("/ui/missions?{query}")).await;
        assert!(page.text.contains(&ids[0]) && !page.text.contains(&ids[1]), "{query}");
    }
    for (name, value) in [("q", "timeout"), ("waiting", "writer")] {
        let form = [("do", "retry"), ("matching", "yes"), (name, value)];
        let asked = browser.submit("/ui/missions", "/ui/missions/act", &form).await;
        assert!(asked.text.contains("1 mission<"), "{name}: {}", asked.text);
    }
}

async fn what_is_typed_wrong_does_not_cost_the_rest(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let new = "/ui/missions/new";
    let form = [
        ("from", "2025-02-01"),
        ("to", "2025-01-01"),
        ("every", "week"),
        ("media", "video"),
        ("languages", "pt\nen es"),
    ];
    let page = browser.submit(new, new, &form).await;
    assert_eq!(page.status, 422, "{page:?}");
    for kept in ["role=\"alert\"", "value=\"2025-02-01\"", "en es", "value=\"week\" selected"] {
        assert!(page.text.contains(kept), "{kept}: {}", page.text);
    }
    let form = [
        ("from", "2025-01-01"),
        ("to", "2025-01-14"),
        ("every", "week"),
        ("media", "video"),
        ("languages", "pt\nen es"),
        ("queue", "yes"),
    ];
    let made = browser.submit(new, new, &form).await;
    let back = made.header("location").unwrap();
    assert!(back.starts_with("/ui/missions?state=queued&said=6+made"), "{back}");
}

async fn a_file_is_imported(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let (new, import) = ("/ui/missions/new", "/ui/missions/import");
    let csv = "date_start,date_end,media_type,languages\n2025-01-01,2025-01-31,video,pt en\n";
    let made = browser.submit(new, import, &[("csv", csv)]).await;
    assert!(made.header("location").unwrap().contains("1+made"), "{made:?}");
    let wrong = browser.submit(new, import, &[("csv", "date_start\n2025")]).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.text.contains("role=\"alert\"") && wrong.text.contains("date_start\n2025"));
}

async fn a_mission_shows_its_timeline_and_can_be_copied(place: Place) {
    let server = Server::on(place).await;
    let id = bank(&server, 1).await.remove(0);
    let mut browser = Browser::new(&server);
    let path = format!("/ui/missions/{id}");
    let page = browser.get(&path).await;
    assert!(page.text.contains("being added to the queue"), "why it waits: {}", page.text);
    let form = [("do", "queue"), ("id", &id), ("back", &path)];
    let done = browser.submit(&path, "/ui/missions/act", &form).await;
    assert_eq!(done.header("location"), Some(&*format!("{path}?said=1+added+to+the+queue")));
    let page = browser.get(&path).await;
    assert!(page.text.contains("mission_queued"), "{}", page.text);
    let copied = browser.submit(&path, &format!("{path}/copy"), &[]).await;
    let copy = copied.header("location").unwrap().split('?').next().unwrap().to_owned();
    assert_ne!(copy, path);
    assert_eq!(browser.get(&copy).await.status, 200);
}

/// As someone may send them who is not a browser.
async fn odd_addresses_and_odd_forms_are_no_fault_of_the_server(place: Place) {
    let server = Server::on(place).await;
    let id = bank(&server, 1).await.remove(0);
    let mut browser = Browser::new(&server);
    let encoded =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let long = "x".repeat(10_000);
    let odd: Vec<&str> = ODD.iter().copied().chain([long.as_str()]).collect();
    let page = browser.get("/ui").await;
    let csrf = crate::support::browser::token(&page);
    for odd in &odd {
        for name in
            ["state", "q", "media", "language", "worker", "error", "from", "to", "before", "said"]
        {
            let page = browser.get(&format!("/ui/missions?{name}={}", encoded(odd))).await;
            assert!(page.status.as_u16() < 500, "{name}={odd:?}: {page:?}");
            assert!(!page.text.contains("<script>alert"), "{name}={odd:?}");
        }
        for (action, names) in [
            (
                "/ui/missions/act",
                &["do", "id", "matching", "state", "from", "error", "back", "q"][..],
            ),
            ("/ui/missions/new", &["from", "to", "every", "media", "languages", "queue"]),
            ("/ui/missions/import", &["csv", "queue"]),
            ("/ui/run", &["do"]),
        ] {
            for name in names {
                let mut form = vec![("csrf", csrf.as_str()), (*name, *odd)];
                if *name != "do" && action.ends_with("act") {
                    form.extend([("do", "queue"), ("id", &id)]);
                }
                let page = browser.post(action, &form).await;
                assert!(page.status.as_u16() < 500, "{action} {name}={odd:?}: {page:?}");
                assert!(!page.text.contains("<script>alert"), "{action} {name}={odd:?}");
            }
        }
    }
}

#[tokio::test]
async fn who_may_only_look_is_offered_nothing_else() {
    let server = Server::file().await;
    let id = bank(&server, 1).await.remove(0);
    for (role, is_offered) in [(Role::Viewer, false), (Role::Operator, true)] {
        let (_, key) = server.make_key(role).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&key).await;
        for path in ["/ui", "/ui/missions", &format!("/ui/missions/{id}")] {
            let page = browser.get(path).await;
            assert_eq!(page.status, 200);
            let offers =
                page.text.contains("/ui/run\"") || page.text.contains("/ui/missions/act\"");
            assert_eq!(offers, is_offered, "{role} {path}");
        }
    }
}
