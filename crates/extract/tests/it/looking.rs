//! What people look at, on each engine and in memory.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use lavra_extract::look::{self, Outcome, PageLine, Which};
use lavra_extract::machine::Happening;
use lavra_extract::model::{Extraction, Status, Totals};
use lavra_extract::store::{self, Arrival, Held, Slice, Volume, Write, Written};

use crate::support::{World, on_each_store, scope, window};

const MINUTE: SignedDuration = SignedDuration::from_secs(60);

on_each_store!(
    a_grid_counts_what_is_stored_of_what_is_not_complete,
    progress_comes_in_parts,
    pages_come_in_parts_with_the_missing_among_them,
    a_page_that_was_stored_otherwise_than_promised_does_not_count,
    pages_of_several_windows_keep_their_order,
    what_nobody_promised_is_not_missing,
    the_last_failure_of_a_page_is_told_until_it_counts,
    all_that_is_stored_is_summed_up,
    a_body_is_read_from_its_beginning,
);

async fn store(world: &World, task: &Extraction, arrivals: Vec<Arrival>) {
    let (id, token) = (task.task_id.clone(), task.token);
    let write = Write { task: id, token, change: None, arrivals };
    assert_eq!(world.write(write).await, Written::Applied { token });
}

async fn lines(world: &World, task: &Extraction, which: Which) -> Vec<PageLine> {
    let pages = look::pages(&*world.store, &task.task_id, which, 0, 100).await.unwrap();
    assert!(!pages.has_more);
    pages.lines
}

fn brief(lines: &[PageLine]) -> Vec<(i64, Outcome, bool)> {
    lines.iter().map(|line| (line.page, line.outcome, line.counts)).collect()
}

async fn a_grid_counts_what_is_stored_of_what_is_not_complete(world: World) {
    let task = world.fetching(world.process().await).await;
    let grid = world.store.grid(&scope()).await.unwrap();
    let [cell] = grid.as_slice() else { panic!("{grid:?}") };
    assert_eq!((cell.status, cell.pages, cell.records), (Status::Fetching, 1, 10));
    assert_eq!((cell.total_pages, cell.total_records), (Some(3), Some(25)));
    assert_eq!(cell.percent(), 33);
    let counts = BTreeMap::from([(Status::Fetching, 1)]);
    assert_eq!(world.store.statuses().await.unwrap(), counts);

    let rest = vec![world.arrival(2, "two", 10), world.arrival(3, "three", 5)];
    store(&world, &task, rest).await;
    let grid = world.store.grid(&scope()).await.unwrap();
    assert_eq!((grid[0].pages, grid[0].percent()), (3, 99), "nobody has looked at the sum yet");
    let exact = Happening::Fetched(lavra_extract::machine::Fetched::All);
    world.write(world.change(&task, exact, Held::Nobody)).await;
    let grid = world.store.grid(&scope()).await.unwrap();
    assert_eq!((grid[0].status, grid[0].records, grid[0].percent()), (Status::Complete, 25, 100));
}

async fn progress_comes_in_parts(world: World) {
    world.plan(5).await;
    let held = Held::Claimed { by: world.process().await, begun: false };
    world.write(world.change(&world.task(3).await, Happening::ClaimedToDiscover, held)).await;
    let whole = world.store.progress(&scope()).await.unwrap();
    let mut slice = Slice { status: None, after: None, limit: 2 };
    let mut seen = Vec::new();
    loop {
        let part = world.store.progress_slice(&scope(), &slice).await.unwrap();
        let Some(last) = part.last() else { break };
        slice.after = Some((last.task.data_date, last.task.endpoint_name.clone()));
        seen.extend(part);
    }
    assert_eq!(seen, whole);
    let discovering = Slice { status: Some(Status::Discovering), after: None, limit: 9 };
    let found = world.store.progress_slice(&scope(), &discovering).await.unwrap();
    assert_eq!(found.iter().map(|p| p.task.data_date.month()).collect::<Vec<_>>(), [3]);
}

async fn pages_come_in_parts_with_the_missing_among_them(world: World) {
    let task = world.fetching(world.process().await).await;
    store(&world, &task, vec![world.arrival(3, "three", 5)]).await;
    let all = lines(&world, &task, Which::All).await;
    let expected =
        [(1, Outcome::Data, true), (2, Outcome::Missing, false), (3, Outcome::Data, true)];
    assert_eq!(brief(&all), expected);
    let stored = all[2].stored.as_ref().unwrap();
    assert_eq!((stored.stored.records, stored.content_hash.as_str()), (5, "three"));
    assert!(task.updated_at.duration_since(stored.fetched_at).abs() < MINUTE);
    assert_eq!(brief(&lines(&world, &task, Which::Missing).await), [(2, Outcome::Missing, false)]);

    let mut seen = Vec::new();
    loop {
        let after = seen.last().map_or(0, |line: &PageLine| line.page);
        let part = look::pages(&*world.store, &task.task_id, Which::All, after, 1).await.unwrap();
        assert_eq!(part.has_more, after < 2, "after {after}");
        seen.extend(part.lines);
        if !part.has_more {
            break;
        }
    }
    assert_eq!(seen, all);
    let past = look::pages(&*world.store, &task.task_id, Which::All, i64::MAX, 9).await.unwrap();
    assert_eq!((past.lines, past.has_more), (Vec::new(), false));
}

async fn a_page_that_was_stored_otherwise_than_promised_does_not_count(world: World) {
    let task = world.fetching(world.process().await).await;
    let mut other_total = world.arrival(3, "three", 5);
    if let store::Outcome::Done(done) = &mut other_total.outcome {
        done.total_records = 24;
    }
    let (short, past) = (world.arrival(2, "two", 9), world.arrival(4, "four", 0));
    store(&world, &task, vec![short, other_total, past]).await;
    let all = lines(&world, &task, Which::All).await;
    let expected = [
        (1, Outcome::Data, true),
        (2, Outcome::Data, false),
        (3, Outcome::Data, false),
        (4, Outcome::Empty, false),
    ];
    assert_eq!(brief(&all), expected, "one record short, another total, past the end");
    let missing = lines(&world, &task, Which::Missing).await;
    assert_eq!(missing, all[1..3]);
    let shown = look::task(&*world.store, &task.task_id).await.unwrap().unwrap();
    assert_eq!((shown.missing, shown.missing_runs), (2, vec![2..=3]));
}

async fn pages_of_several_windows_keep_their_order(world: World) {
    let task = world.fetching(world.process().await).await;
    let mut halved = world.change(&task, Happening::ClaimedToFetch, Held::Same);
    let (mut second, empty) = (window(3, Some(Totals::of(15, 10))), window(4, None));
    second.base = 100_000;
    let first = window(2, Some(Totals::of(25, 10)));
    halved.change.as_mut().unwrap().windows = Some(vec![first, second, empty]);
    world.write(halved).await;
    let mut arrival = world.arrival(100_002, "last", 5);
    if let store::Outcome::Done(done) = &mut arrival.outcome {
        done.total_records = 15;
    }
    store(&world, &task, vec![arrival]).await;
    let numbers: Vec<_> =
        lines(&world, &task, Which::All).await.iter().map(|l| (l.page, l.counts)).collect();
    let expected = [(1, true), (2, false), (3, false), (100_001, false), (100_002, true)];
    assert_eq!(numbers, expected);
    let shown = look::task(&*world.store, &task.task_id).await.unwrap().unwrap();
    assert_eq!((shown.missing, shown.windows.len()), (3, 3));
    assert_eq!(shown.missing_runs, [2..=3, 100_001..=100_001]);
    let above = world.store.missing_after(&task.task_id, 2, 9).await.unwrap();
    assert_eq!(above, [3..=3, 100_001..=100_001]);
}

async fn what_nobody_promised_is_not_missing(world: World) {
    world.plan(1).await;
    let task = world.task(1).await;
    let shown = look::task(&*world.store, &task.task_id).await.unwrap().unwrap();
    assert_eq!((shown.missing, shown.missing_runs, shown.windows), (0, vec![], vec![]));
    assert_eq!(lines(&world, &task, Which::All).await, []);
    let nobody = lavra_extract::model::ExtractionId("nobody".into());
    assert!(look::task(&*world.store, &nobody).await.unwrap().is_none());
}

async fn the_last_failure_of_a_page_is_told_until_it_counts(world: World) {
    let task = world.fetching(world.process().await).await;
    for (page, code) in [(2, 500), (2, 503), (3, 429)] {
        let mut failed = world.arrival(page, "-", 0);
        failed.outcome = store::Outcome::Failed { error: format!("status {code}") };
        failed.code = code;
        store(&world, &task, vec![failed]).await;
    }
    let all = lines(&world, &task, Which::All).await;
    let told: Vec<_> = all
        .iter()
        .map(|line| (line.outcome, line.failure.as_ref().map(|f| (f.code, f.error.as_str()))))
        .collect();
    let expected = [
        (Outcome::Data, None),
        (Outcome::Failed, Some((503, "status 503"))),
        (Outcome::Failed, Some((429, "status 429"))),
    ];
    assert_eq!(told, expected);
    let failed_at = all[1].failure.as_ref().unwrap().at;
    assert!(task.updated_at.duration_since(failed_at).abs() < MINUTE);
    store(&world, &task, vec![world.arrival(2, "two", 10)]).await;
    let all = lines(&world, &task, Which::All).await;
    assert_eq!((all[1].outcome, all[1].counts, &all[1].failure), (Outcome::Data, true, &None));
}

async fn all_that_is_stored_is_summed_up(world: World) {
    assert_eq!(world.store.volume().await.unwrap(), Volume::default());
    let task = world.fetching(world.process().await).await;
    store(&world, &task, vec![world.arrival(2, "two", 10), world.arrival(3, "three", 5)]).await;
    let progress = world.store.progress(&scope()).await.unwrap().remove(0);
    let whole = world.store.volume().await.unwrap();
    assert_eq!((whole.pages, whole.records), (3, 25));
    assert_eq!(whole.bytes, progress.bytes);
}

async fn a_body_is_read_from_its_beginning(world: World) {
    let task = world.fetching(world.process().await).await;
    store(&world, &task, vec![world.arrival(2, "two", 10)]).await;
    let page = world.store.pages_named(&task.task_id, vec![2]).await.unwrap().remove(0);
    let opening =
        async |most| world.store.opening(&task.task_id, page.response, most).await.unwrap();
    let bodies = world.store.bodies(&task.task_id, vec![page.response]).await.unwrap();
    let whole = bodies[0].1.clone().unwrap();
    assert_eq!(opening(10_000).await.as_ref(), Some(&whole));
    assert_eq!(opening(3).await.unwrap(), whole.chars().take(3).collect::<String>());
    let nobody = uuid::Uuid::nil();
    assert_eq!(world.store.opening(&task.task_id, nobody, 9).await.unwrap(), None);
}
