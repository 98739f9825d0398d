//! Webhooks as people add, change and remove them.

use lavra_notify::model::{Topic, WebhookId};
use lavra_notify::store::Outcome;
use lavra_notify::{Changes, Error, NewWebhook};
use uuid::Uuid;

use crate::support::{SECRET, World, on_each_engine};

on_each_engine!(
    a_webhook_is_shown_without_what_is_secret_in_it,
    a_webhook_is_found_by_its_id_and_by_its_name,
    a_name_is_given_once,
    only_what_is_said_changes,
    one_that_is_active_again_begins_anew,
    a_webhook_that_is_removed_takes_its_secret_along,
    what_came_of_it_is_noted_unless_it_has_changed,
    what_makes_no_sense_is_refused,
    webhooks_of_another_schema_are_not_ours,
);

async fn a_webhook_is_shown_without_what_is_secret_in_it(world: World) {
    let url = "https://hooks.example.com/services/T1/s3cret?token=s3cret";
    let webhook = world.webhook("ops", url, &[Topic::TaskDeadLettered, Topic::MissionFailed]).await;
    let shown = serde_json::to_value(&webhook).unwrap();
    assert_eq!(shown["url"], "https://hooks.example.com/…");
    assert_eq!(shown["events"], serde_json::json!(["mission.failed", "task.dead_lettered"]));
    assert_eq!(shown["active"], true);
    assert!(shown["last_ok_at"].is_null() && shown["last_error"].is_null());
    let text = shown.to_string();
    assert!(!text.contains("s3cret") && !text.contains(SECRET) && !text.contains("sealed"));
    let in_table = "SELECT count(*) FROM lavra.webhooks WHERE url LIKE '%s3cret%'
                    OR sealed LIKE '%s3cret%' OR name <> 'ops'";
    assert_eq!(world.count(in_table).await, 0);
}

async fn a_webhook_is_found_by_its_id_and_by_its_name(world: World) {
    let first = world.webhook("first", "https://a.example", &[]).await;
    let second = world.webhook("second", "https://b.example", &[]).await;
    assert_eq!(world.webhooks.list().await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(world.webhooks.find("second").await.unwrap(), second);
    assert_eq!(world.webhooks.find(&first.id.to_string()).await.unwrap(), first);
    assert!(matches!(world.webhooks.find("third").await, Err(Error::NotFound(_))));
    let nobody = WebhookId(Uuid::nil());
    assert_eq!(world.store().webhook(nobody).await.unwrap(), None);
    assert_eq!(world.store().webhook(first.id).await.unwrap(), Some(first));
}

async fn a_name_is_given_once(world: World) {
    world.webhook("ops", "https://a.example", &[]).await;
    let other = world.webhook("other", "https://b.example", &[]).await;
    let again = NewWebhook {
        name: " ops ".into(),
        url: "https://c.example".to_owned().into(),
        secret: SECRET.to_owned().into(),
        events: None,
    };
    assert!(matches!(world.webhooks.add(again).await, Err(Error::NameTaken(_))));
    let rename = |name: &str| Changes { name: Some(name.into()), ..Changes::default() };
    let taken = world.webhooks.change(&other, rename("ops")).await;
    assert!(matches!(taken, Err(Error::NameTaken(_))));
    let same = world.webhooks.change(&other, rename("other")).await.unwrap();
    assert_eq!(same, other);
    // What was sealed for those that were not added is gone.
    assert_eq!(world.count("SELECT count(*) FROM lavra.secrets").await, 2);
}

async fn only_what_is_said_changes(world: World) {
    let before = world.webhook("ops", "https://a.example/x", &[Topic::MissionFailed]).await;
    let url = Changes { url: Some("https://b.example/y".to_owned().into()), ..Changes::default() };
    let moved = world.webhooks.change(&before, url).await.unwrap();
    assert_eq!(moved.url, "https://b.example/…");
    assert_ne!(moved.sealed, before.sealed);
    assert_eq!(
        (&moved.name, &moved.events, moved.since),
        (&before.name, &before.events, before.since)
    );
    let events = Changes {
        events: Some(vec![Topic::PoolExhausted, Topic::ExtractionShort, Topic::PoolExhausted]),
        ..Changes::default()
    };
    let changed = world.webhooks.change(&moved, events).await.unwrap();
    assert_eq!(changed.events, [Topic::PoolExhausted, Topic::ExtractionShort]);
    assert_eq!((&changed.url, &changed.sealed), (&moved.url, &moved.sealed));
    assert_eq!(world.count("SELECT count(*) FROM lavra.secrets").await, 1);
}

async fn one_that_is_active_again_begins_anew(world: World) {
    let webhook = world.webhook("ops", "https://a.example", &[]).await;
    let set = |active| Changes { active: Some(active), ..Changes::default() };
    let still = world.webhooks.change(&webhook, set(true)).await.unwrap();
    assert_eq!(still.since, webhook.since);
    let inactive = world.webhooks.change(&webhook, set(false)).await.unwrap();
    assert!(!inactive.active && inactive.since == webhook.since);
    let again = world.webhooks.change(&webhook, set(true)).await.unwrap();
    assert!(again.active && again.since > webhook.since);
    assert_eq!(again.created_at, webhook.created_at);
}

async fn a_webhook_that_is_removed_takes_its_secret_along(world: World) {
    let webhook = world.webhook("ops", "https://a.example", &[]).await;
    world.webhooks.remove(&webhook).await.unwrap();
    assert_eq!(world.webhooks.list().await.unwrap(), []);
    assert_eq!(world.count("SELECT count(*) FROM lavra.secrets").await, 0);
    assert!(matches!(world.webhooks.remove(&webhook).await, Err(Error::NotFound(_))));
    let late = Changes { active: Some(true), ..Changes::default() };
    assert!(matches!(world.webhooks.change(&webhook, late).await, Err(Error::NotFound(_))));
}

async fn what_came_of_it_is_noted_unless_it_has_changed(world: World) {
    let webhook = world.webhook("ops", "https://a.example", &[]).await;
    let store = world.store();
    let now = async || store.webhook(webhook.id).await.unwrap().unwrap();
    let failed = Outcome::Failed("HTTP 500".into());
    store.note(webhook.id, &webhook.sealed, &failed).await.unwrap();
    assert_eq!(now().await.last_error.as_deref(), Some("HTTP 500"));
    store.note(webhook.id, &webhook.sealed, &Outcome::Taken).await.unwrap();
    let taken = now().await;
    assert!(taken.last_ok_at.is_some_and(|at| at >= taken.created_at));
    assert_eq!(taken.last_error, None);
    // A person gave it another address meanwhile: what the old one said counts no more.
    store.note(webhook.id, "webhooks/another", &Outcome::Gone("HTTP 410".into())).await.unwrap();
    assert_eq!(now().await, taken);
    store.note(webhook.id, &webhook.sealed, &Outcome::Gone("HTTP 410".into())).await.unwrap();
    let gone = now().await;
    assert!(!gone.active && gone.last_ok_at == taken.last_ok_at);
    assert_eq!(gone.last_error.as_deref(), Some("HTTP 410"));
}

async fn what_makes_no_sense_is_refused(world: World) {
    let order = |name: &str, url: &str, secret: &str, events: Option<Vec<Topic>>| NewWebhook {
        name: name.into(),
        url: url.to_owned().into(),
        secret: secret.to_owned().into(),
        events,
    };
    let (url, long) = ("https://a.example", "x".repeat(101));
    for (wrong, says) in [
        (order("", url, SECRET, None), "a name has 1 to 100"),
        (order(&long, url, SECRET, None), "a name has 1 to 100"),
        (order("a/b", url, SECRET, None), "without / and :"),
        (order("a:test", url, SECRET, None), "without / and :"),
        (order("a\nb", url, SECRET, None), "in one line"),
        (order("a", "not a url", SECRET, None), "has no scheme"),
        (order("a", "file:///etc/passwd", SECRET, None), "not http"),
        (order("a", url, "short", None), "a secret has 16 to 200"),
        (order("a", url, SECRET, Some(Vec::new())), "at least one event"),
    ] {
        let error = world.webhooks.add(wrong).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(world.count("SELECT count(*) FROM lavra.secrets").await, 0);
}

/// Several schemas of workflows may share one database, and with it the schema `lavra`.
async fn webhooks_of_another_schema_are_not_ours(world: World) {
    let webhook = world.webhook("ops", "https://a.example", &[]).await;
    world.execute("UPDATE lavra.webhooks SET workflow = 'another'").await;
    assert_eq!(world.webhooks.list().await.unwrap(), []);
    let ours = world.webhook("ops", "https://a.example", &[]).await;
    assert_ne!(ours.id, webhook.id);
    assert_eq!(world.webhooks.list().await.unwrap(), [ours]);
}
