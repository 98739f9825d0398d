//! What could not be delivered or done, kept for a person to look at.

use lavra_tasks::model::{DeadLetterId, TaskId};
use lavra_tasks::store::DeadLetter;

use crate::support::shorthand::fail;
use crate::support::{World, on_each_engine};

on_each_engine!(
    a_message_that_names_no_task_is_kept,
    letters_come_newest_first_in_pages,
    a_letter_is_kept_once,
    a_letter_can_be_removed,
    a_body_with_a_zero_byte_is_kept_all_the_same,
);

fn letter(world: &World, reason: &str) -> DeadLetter {
    DeadLetter {
        id: DeadLetterId(world.clock().new_id()),
        task_id: None,
        kind: None,
        reason: reason.to_owned(),
        body: Some("{not json".into()),
        created_at: world.clock().now(),
    }
}

async fn a_message_that_names_no_task_is_kept(world: World) {
    let new = letter(&world, "it's not JSON");
    world.bury(new.clone()).await.unwrap();
    let kept = world.dead_letter(new.id).await.unwrap().unwrap();
    assert!(kept.created_at.duration_since(new.created_at).abs().as_secs() < 5);
    assert_eq!(kept, DeadLetter { created_at: kept.created_at, ..new });
    let named = DeadLetter {
        task_id: Some(TaskId(world.clock().new_id())),
        kind: Some("a".into()),
        body: None,
        ..letter(&world, "nobody's")
    };
    world.bury(named.clone()).await.unwrap();
    let kept = world.dead_letter(named.id).await.unwrap().unwrap();
    assert_eq!(kept, DeadLetter { created_at: kept.created_at, ..named });
    assert_eq!(world.dead_letter(DeadLetterId(world.clock().new_id())).await.unwrap(), None);
}

async fn letters_come_newest_first_in_pages(world: World) {
    let mut expected = Vec::new();
    for n in 0..6 {
        let new = letter(&world, &format!("reason {n}"));
        expected.push(new.id);
        world.bury(new).await.unwrap();
    }
    let running = world.running().await;
    world.happen(running.id, &fail(None)).await;
    let first = world.dead_letters(None, 1).await.unwrap().remove(0);
    assert_eq!(first.task_id, Some(running.id));
    expected.push(first.id);
    expected.reverse();
    let (mut before, mut read) = (None, Vec::new());
    loop {
        let page = world.dead_letters(before, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        read.extend(page.iter().map(|letter| letter.id));
    }
    assert_eq!(read, expected);
}

async fn a_letter_is_kept_once(world: World) {
    let new = letter(&world, "first");
    world.bury(new.clone()).await.unwrap();
    world.bury(DeadLetter { reason: "second".into(), ..new.clone() }).await.unwrap();
    let letters = world.dead_letters(None, 10).await.unwrap();
    assert_eq!((letters.len(), letters[0].reason.as_str()), (1, "first"));
}

async fn a_letter_can_be_removed(world: World) {
    let (one, other) = (letter(&world, "one"), letter(&world, "other"));
    world.bury(one.clone()).await.unwrap();
    world.bury(other.clone()).await.unwrap();
    assert!(world.remove_dead_letter(one.id).await.unwrap());
    assert!(!world.remove_dead_letter(one.id).await.unwrap());
    let letters = world.dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.iter().map(|letter| letter.id).collect::<Vec<_>>(), [other.id]);
}

async fn a_body_with_a_zero_byte_is_kept_all_the_same(world: World) {
    let new = DeadLetter { body: Some("a\0b".into()), ..letter(&world, "binary") };
    world.bury(new.clone()).await.unwrap();
    let kept = world.dead_letter(new.id).await.unwrap().unwrap();
    assert_eq!(kept.body.as_deref(), Some("a\u{FFFD}b"));
}
