//! The stream of all events: nothing missed, nothing twice, whoever commits late.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lavra_tasks::model::{Event, EventId};
use lavra_tasks::store::{Claim, Cursor};
use uuid::Uuid;

use crate::support::shorthand::step;
use crate::support::{World, at_once, on_each_engine, on_servers};

on_each_engine!(
    events_come_in_the_order_of_their_transactions,
    a_reader_goes_on_from_its_cursor,
    the_end_is_behind_everything_that_happened,
    a_reader_misses_nothing_while_eight_write,
    a_refused_write_is_not_in_the_stream,
);
on_servers!(an_event_that_commits_late_is_not_missed);

const START: Cursor = Cursor { transaction: 0, event: EventId(Uuid::nil()) };

fn after(event: &Event) -> Cursor {
    Cursor { transaction: event.transaction, event: event.id }
}

async fn events_come_in_the_order_of_their_transactions(world: World) {
    let made = world.make_many("a", 3).await;
    let claimed = world.take(&["a"], 2).await;
    world.happen(claimed[1].id, &step(1, "on")).await;
    let events = world.stream().await;
    let order: Vec<_> = events.iter().map(|event| (event.task_id, event.version)).collect();
    let [first, second, third] = made.as_slice() else { panic!("three were made") };
    let expected = [(first, 0), (second, 0), (third, 0), (first, 1), (second, 1), (second, 2)];
    assert_eq!(order, expected.map(|(id, version)| (*id, version)));
    assert!(events.is_sorted_by_key(|event| (event.transaction, event.id)));
    assert_eq!(events[0], world.history(*first).await[0]);
}

async fn a_reader_goes_on_from_its_cursor(world: World) {
    world.make_many("a", 7).await;
    world.take(&["a"], 5).await;
    let all = world.stream().await;
    assert_eq!(all.len(), 12);
    let (mut cursor, mut read) = (START, Vec::new());
    loop {
        let page = world.stream_since(cursor, 5).await.unwrap();
        assert!(page.len() <= 5);
        let Some(last) = page.last() else { break };
        cursor = after(last);
        read.extend(page);
    }
    assert_eq!(read, all);
}

async fn the_end_is_behind_everything_that_happened(world: World) {
    let empty = world.stream_end().await.unwrap();
    let first = world.make_one("a").await;
    world.stream().await;
    let end = world.stream_end().await.unwrap();
    assert_eq!(world.stream_since(end, 10).await.unwrap(), []);
    let second = world.make_one("a").await;
    world.stream().await;
    let later = world.stream_since(end, 10).await.unwrap();
    assert_eq!(later.iter().map(|event| event.task_id).collect::<Vec<_>>(), [second]);
    let all = world.stream_since(empty, 10).await.unwrap();
    assert_eq!(all.iter().map(|event| event.task_id).collect::<Vec<_>>(), [first, second]);
}

/// Eight writers create, claim and step; the reader pages along from its cursor.
async fn a_reader_misses_nothing_while_eight_write(world: World) {
    const WRITERS: usize = 8;
    const ROUNDS: usize = 12;
    const EVENTS: usize = WRITERS * ROUNDS * 6;
    let world = Arc::new(world);
    let store = world.store.clone();
    let reader = tokio::spawn(async move {
        let (mut cursor, mut read) = (START, Vec::new());
        while read.len() < EVENTS {
            let page = store.stream_since(cursor, 17).await.unwrap();
            match page.last() {
                Some(last) => cursor = after(last),
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
            read.extend(page);
        }
        read.extend(store.stream_since(cursor, 17).await.unwrap());
        read
    });
    at_once(WRITERS, |writer| {
        let world = world.clone();
        async move {
            let kind = format!("kind{writer}");
            for _ in 0..ROUNDS {
                world.make_many(&kind, 2).await;
                let claim = Claim { process: world.process(), kinds: vec![kind.clone()], limit: 2 };
                for claimed in world.claim(claim).await.unwrap() {
                    world.happen(claimed.id, &step(50, "on")).await;
                }
            }
        }
    })
    .await;
    assert_eq!(world.stream().await.len(), EVENTS);
    let read = tokio::time::timeout(Duration::from_secs(20), reader).await;
    let read = read.expect("the reader missed an event, or waits for ever").unwrap();
    let unique: HashSet<EventId> = read.iter().map(|event| event.id).collect();
    assert_eq!(unique.len(), read.len(), "an event came twice");
    assert_eq!(read.len(), EVENTS);
    assert!(read.is_sorted_by_key(|event| (event.transaction, event.id)));
    for task in read.iter().map(|event| event.task_id).collect::<HashSet<_>>() {
        let versions: Vec<i32> =
            read.iter().filter(|event| event.task_id == task).map(|event| event.version).collect();
        assert_eq!(versions, [0, 1, 2], "the order of one task");
    }
}

async fn a_refused_write_is_not_in_the_stream(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &step(1, "on")).await;
    write.guard.token = Some(0);
    world.stream().await;
    let end = world.stream_end().await.unwrap();
    world.write_one(write).await;
    assert_eq!(world.stream_since(end, 10).await.unwrap(), []);
}

async fn an_event_that_commits_late_is_not_missed(world: World) {
    let task = world.make_one("a").await;
    world.stream().await;
    let start = world.stream_end().await.unwrap();
    let slow = world.server().client().await;
    slow.batch_execute("BEGIN").await.unwrap();
    let early = format!(
        "INSERT INTO kodus_workflow.task_events (id, task_id, status, actor, version)
         VALUES ('{}', '{task}', 'PENDING', 'SYSTEM', 7)",
        world.clock().new_id()
    );
    slow.batch_execute(&early).await.unwrap();
    let quick = world.make_one("a").await;

    let page = world.stream_since(start, 10).await.unwrap();
    assert_eq!(page, [], "an event before it is still to come");
    let end = world.stream_end().await.unwrap();
    slow.batch_execute("COMMIT").await.unwrap();
    world.stream().await;
    for cursor in [start, end] {
        let page = world.stream_since(cursor, 10).await.unwrap();
        let tasks: Vec<_> = page.iter().map(|event| event.task_id).collect();
        assert_eq!(tasks, [task, quick]);
    }
}
