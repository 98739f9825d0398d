//! Messages stand until the broker has confirmed them.

use std::collections::HashSet;
use std::time::Duration;

use lavra_tasks::model::{OutboxId, TaskId};
use lavra_tasks::store::{Announcement, NewRow};

use crate::support::shorthand::{ANNOUNCED, CANCEL};
use crate::support::{World, at_once, on_each_engine};

on_each_engine!(
    a_message_is_leased_to_whoever_takes_it,
    the_oldest_messages_are_taken_first_and_no_more_than_asked,
    a_confirmed_message_is_gone,
    a_postponed_message_comes_again_later,
    takers_never_share_a_message,
    only_silent_waiting_tasks_are_announced_again,
    the_most_urgent_are_announced_again_first,
    nobodys_messages_are_no_error,
);

const LEASE: Duration = Duration::from_secs(60);

async fn take(world: &World, limit: usize) -> Vec<Announcement> {
    let mut taken = world.take_announcements(LEASE, limit).await.unwrap();
    taken.sort_by_key(|message| message.id);
    taken
}

fn ids(messages: &[Announcement]) -> Vec<OutboxId> {
    messages.iter().map(|message| message.id).collect()
}

fn tasks(messages: &[Announcement]) -> Vec<TaskId> {
    messages.iter().map(|message| message.task).collect()
}

/// Announced tasks whose creator did not publish.
async fn announced(world: &World, count: usize) -> Vec<TaskId> {
    let rows: Vec<NewRow> = (0..count).map(|_| world.row("a")).collect();
    let ids = rows.iter().map(|row| row.id).collect();
    world.create(rows, ANNOUNCED).await.unwrap();
    leases_end(world).await;
    ids
}

async fn leases_end(world: &World) {
    world.execute("UPDATE kodus_workflow.task_outbox SET next_at = '2020-01-01T00:00:00Z'").await;
}

async fn a_message_is_leased_to_whoever_takes_it(world: World) {
    let made = announced(&world, 2).await;
    let taken = take(&world, 10).await;
    assert_eq!(tasks(&taken), made);
    assert_eq!(take(&world, 10).await, []);
    assert_eq!(world.outbox_depth().await.unwrap(), 2);
    leases_end(&world).await;
    assert_eq!(take(&world, 10).await, taken);
    let sql = "SELECT count(*) FROM kodus_workflow.task_outbox WHERE attempts = 2";
    assert_eq!(world.count(sql).await, 2);
}

async fn the_oldest_messages_are_taken_first_and_no_more_than_asked(world: World) {
    let made = announced(&world, 5).await;
    assert_eq!(tasks(&take(&world, 2).await), made[..2]);
    assert_eq!(tasks(&take(&world, 2).await), made[2..4]);
    assert_eq!(tasks(&take(&world, 2).await), made[4..]);
}

async fn a_confirmed_message_is_gone(world: World) {
    announced(&world, 3).await;
    let taken = take(&world, 10).await;
    world.announced(vec![taken[0].id, taken[2].id]).await.unwrap();
    assert_eq!(world.outbox_depth().await.unwrap(), 1);
    leases_end(&world).await;
    assert_eq!(ids(&take(&world, 10).await), [taken[1].id]);
}

async fn a_postponed_message_comes_again_later(world: World) {
    announced(&world, 2).await;
    let taken = take(&world, 10).await;
    world.postpone(vec![taken[0].id], Duration::ZERO).await.unwrap();
    world.postpone(vec![taken[1].id], Duration::from_secs(600)).await.unwrap();
    assert_eq!(take(&world, 10).await, taken[..1]);
    let sql = "SELECT count(*) FROM kodus_workflow.task_outbox";
    assert_eq!(world.count(sql).await, 2);
}

async fn takers_never_share_a_message(world: World) {
    announced(&world, 60).await;
    let taken = at_once(6, |_| {
        let store = world.store.clone();
        async move {
            let mut all = Vec::new();
            loop {
                let taken = store.take_announcements(LEASE, 7).await.unwrap();
                if taken.is_empty() {
                    return all;
                }
                all.extend(ids(&taken));
            }
        }
    })
    .await;
    let taken: Vec<OutboxId> = taken.into_iter().flatten().collect();
    assert_eq!(taken.len(), 60);
    assert_eq!(taken.into_iter().collect::<HashSet<_>>().len(), 60);
}

async fn only_silent_waiting_tasks_are_announced_again(world: World) {
    announced(&world, 1).await;
    let silent = world.make_many("a", 2).await;
    let delayed = NewRow { delay: Some(Duration::from_secs(60)), ..world.row("a") };
    world.make(vec![delayed, world.row("b")]).await;
    let ended = world.make_one("a").await;
    world.happen(ended, &CANCEL).await;

    let again = async |age| world.announce_again("a".into(), Duration::from_secs(age), 10).await;
    assert_eq!(again(60).await.unwrap(), 0, "they have not waited for so long");
    world.execute("UPDATE kodus_workflow.tasks SET updated_at = '2020-01-01T00:00:00Z'").await;
    assert_eq!(again(60).await.unwrap(), 2);
    assert_eq!(again(60).await.unwrap(), 0, "they have a message now");
    assert_eq!(world.outbox_depth().await.unwrap(), 3);
    let taken = take(&world, 10).await;
    assert!(silent.iter().all(|id| tasks(&taken).contains(id)), "{taken:?}");
    assert!(taken.iter().all(|message| message.kind == "a"));
}

async fn the_most_urgent_are_announced_again_first(world: World) {
    let rows = [1, 9, 5].map(|priority| NewRow { priority, ..world.row("a") });
    let made = world.make(rows.to_vec()).await;
    world.execute("UPDATE kodus_workflow.tasks SET updated_at = '2020-01-01T00:00:00Z'").await;
    assert_eq!(world.announce_again("a".into(), LEASE, 2).await.unwrap(), 2);
    let mut urgent = tasks(&take(&world, 10).await);
    urgent.sort();
    assert_eq!(urgent, made[1..]);
}

async fn nobodys_messages_are_no_error(world: World) {
    let nobodys = vec![OutboxId(world.clock().new_id())];
    world.announced(nobodys.clone()).await.unwrap();
    world.postpone(nobodys, LEASE).await.unwrap();
    world.announced(Vec::new()).await.unwrap();
    world.postpone(Vec::new(), LEASE).await.unwrap();
    assert_eq!(take(&world, 0).await, []);
    assert_eq!(world.outbox_depth().await.unwrap(), 0);
}
