//! Lists: filters, and paging over what was made in the same instant.

use jiff::SignedDuration;
use lavra_tasks::model::{Status, TaskId};
use lavra_tasks::store::{ListFilter, NewRow};

use crate::support::shorthand::CANCEL;
use crate::support::{World, on_each_engine};

on_each_engine!(
    the_newest_tasks_come_first,
    a_list_is_narrowed_by_type_and_status,
    a_list_is_narrowed_by_the_time_of_creation,
    pages_neither_repeat_nor_leave_out,
    a_page_holds_while_tasks_are_made,
);

fn everything() -> ListFilter {
    ListFilter { limit: 100, ..ListFilter::default() }
}

async fn listed(world: &World, filter: ListFilter) -> Vec<TaskId> {
    world.list(filter).await.unwrap().iter().map(|task| task.id).collect()
}

async fn the_newest_tasks_come_first(world: World) {
    let mut made = world.make_many("a", 3).await;
    made.push(world.make_one("b").await);
    made.reverse();
    assert_eq!(listed(&world, everything()).await, made);
    assert_eq!(listed(&world, ListFilter { limit: 2, ..everything() }).await, made[..2]);
    assert_eq!(world.list(everything()).await.unwrap()[0], world.read(made[0]).await);
}

async fn a_list_is_narrowed_by_type_and_status(world: World) {
    let (a, b) = (world.make_one("a").await, world.make_one("b").await);
    let cancelled = world.make_one("a").await;
    world.happen(cancelled, &CANCEL).await;
    let of = |kind: Option<&str>, status| ListFilter {
        kind: kind.map(ToOwned::to_owned),
        status,
        ..everything()
    };
    assert_eq!(listed(&world, of(Some("a"), None)).await, [cancelled, a]);
    assert_eq!(listed(&world, of(None, Some(Status::Pending))).await, [b, a]);
    assert_eq!(listed(&world, of(Some("a"), Some(Status::Cancelled))).await, [cancelled]);
    assert_eq!(listed(&world, of(Some("b"), Some(Status::Cancelled))).await, []);
    assert_eq!(listed(&world, of(Some("it's"), None)).await, []);
}

async fn a_list_is_narrowed_by_the_time_of_creation(world: World) {
    let (old, new) = (world.make_one("a").await, world.make_one("a").await);
    let sql = format!(
        "UPDATE kodus_workflow.tasks SET created_at = '2020-01-01T00:00:00Z' WHERE id = '{old}'"
    );
    world.execute(&sql).await;
    let made = world.read(new).await.created_at;
    let after = |time| ListFilter { created_after: Some(time), ..everything() };
    let before = |time| ListFilter { created_before: Some(time), ..everything() };
    let tick = SignedDuration::from_micros(1);
    assert_eq!(listed(&world, after(made)).await, [new], "its own time counts");
    assert_eq!(listed(&world, after(made + tick)).await, []);
    assert_eq!(listed(&world, before(made)).await, [old], "its own time does not count");
    assert_eq!(listed(&world, before(made + tick)).await, [new, old]);
    let between =
        ListFilter { created_after: Some("2019-12-31T00:00:00Z".parse().unwrap()), ..before(made) };
    assert_eq!(listed(&world, between).await, [old]);
}

async fn pages_neither_repeat_nor_leave_out(world: World) {
    // One transaction, one created_at: only the ids tell them apart.
    let rows: Vec<NewRow> =
        (0..25).map(|n| world.row(if n % 2 == 0 { "a" } else { "b" })).collect();
    let mut made = world.make(rows).await;
    made.reverse();
    let (mut before, mut read) = (None, Vec::new());
    loop {
        let page = listed(&world, ListFilter { before, limit: 4, ..everything() }).await;
        let Some(last) = page.last() else { break };
        before = Some(*last);
        read.extend(page);
    }
    assert_eq!(read, made);
}

async fn a_page_holds_while_tasks_are_made(world: World) {
    let mut made = world.make_many("a", 6).await;
    made.reverse();
    let first = listed(&world, ListFilter { limit: 3, ..everything() }).await;
    world.make_many("a", 3).await;
    let filter = ListFilter { before: first.last().copied(), limit: 3, ..everything() };
    assert_eq!([first, listed(&world, filter).await].concat(), made);
}
