//! The same request again answers the first task: by the hash of its input, by its key.

use lavra_tasks::Error;
use lavra_tasks::store::{Made, NewRow};

use crate::support::shorthand::{ANNOUNCED, MANY, QUIET, hash, key};
use crate::support::{World, at_once, on_each_engine};

on_each_engine!(
    the_same_input_answers_the_first_task,
    the_same_input_twice_in_one_call_makes_one_task,
    the_same_inputs_again_answer_the_first_tasks,
    the_same_input_of_another_type_is_another_task,
    twenty_creators_of_one_input_make_one_task,
    creators_of_overlapping_sets_do_not_block_each_other,
    the_same_key_answers_the_first_task,
    the_same_key_twice_in_one_call_makes_one_task,
    a_call_with_a_key_of_another_request_makes_nothing,
    a_key_of_another_request_is_refused,
    a_key_of_another_request_is_refused_whatever_its_input_is,
    twenty_creators_with_one_key_make_one_task,
    a_key_whose_input_was_taken_belongs_to_the_task_of_that_input,
    a_key_whose_input_is_taken_within_its_call_belongs_to_that_task,
    a_key_goes_with_its_task,
    a_key_whose_task_is_gone_belongs_to_the_task_of_its_input,
    a_key_without_its_task_does_not_keep_it_from_being_made,
);

const TASKS: &str = "SELECT count(*) FROM kodus_workflow.tasks";

fn of_input(world: &World, n: u32) -> NewRow {
    NewRow { input_hash: Some(hash(n)), ..world.row("a") }
}

/// With the key `k` and the fingerprint `n`.
fn with_key(world: &World, n: u32) -> NewRow {
    NewRow { key: Some(key("k", n)), ..world.row("a") }
}

async fn create(world: &World, row: &NewRow) -> Made {
    world.create(vec![row.clone()], QUIET).await.unwrap().remove(0)
}

fn is_reused(outcome: &lavra_tasks::Result<Vec<Made>>) {
    assert!(matches!(outcome, Err(Error::KeyReused(key)) if key == "k"), "{outcome:?}");
}

async fn the_same_input_answers_the_first_task(world: World) {
    let first = of_input(&world, 1);
    assert_eq!(create(&world, &first).await, Made::New);
    assert_eq!(create(&world, &of_input(&world, 1)).await, Made::Existing(first.id));
    assert_eq!(create(&world, &of_input(&world, 2)).await, Made::New);
    assert_eq!(world.count(TASKS).await, 2);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.task_events").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.task_inputs").await, 2);
}

async fn the_same_input_twice_in_one_call_makes_one_task(world: World) {
    let known = of_input(&world, 9);
    create(&world, &known).await;
    let rows: Vec<NewRow> =
        [1, 2, 1, 9, 1].iter().map(|n| of_input(&world, *n)).chain([world.row("a")]).collect();
    let again = Made::Existing(rows[0].id);
    let made = world.create(rows, QUIET).await.unwrap();
    let known = Made::Existing(known.id);
    assert_eq!(made, [Made::New, Made::New, again.clone(), known, again, Made::New]);
    assert_eq!(world.count(TASKS).await, 4);
}

async fn the_same_inputs_again_answer_the_first_tasks(world: World) {
    let rows = || (0..MANY as u32).map(|n| of_input(&world, n)).collect::<Vec<NewRow>>();
    let mut first = world.make(rows()).await;
    first.reverse();
    let mut again = rows();
    again.reverse();
    let made = world.create(again, QUIET).await.unwrap();
    assert!(made.iter().zip(&first).all(|(made, id)| *made == Made::Existing(*id)), "another task");
    assert_eq!(world.count(TASKS).await, MANY as i64);
}

async fn the_same_input_of_another_type_is_another_task(world: World) {
    let other = NewRow { kind: "b".into(), ..of_input(&world, 1) };
    let rows = vec![of_input(&world, 1), other];
    assert_eq!(world.create(rows, QUIET).await.unwrap(), [Made::New, Made::New]);
}

async fn twenty_creators_of_one_input_make_one_task(world: World) {
    let rows: Vec<NewRow> = (0..20).map(|_| of_input(&world, 1)).collect();
    let made = at_once(20, |place| {
        let (store, row) = (world.store.clone(), rows[place].clone());
        async move { store.create(vec![row], ANNOUNCED).await.unwrap().remove(0) }
    })
    .await;
    let winner = made.iter().position(|made| *made == Made::New).unwrap();
    for (place, made) in made.iter().enumerate().filter(|(place, _)| *place != winner) {
        assert_eq!(*made, Made::Existing(rows[winner].id), "creator {place}");
    }
    assert_eq!(world.count(TASKS).await, 1);
    assert_eq!(world.outbox_depth().await.unwrap(), 1);
}

async fn creators_of_overlapping_sets_do_not_block_each_other(world: World) {
    for round in 0..10 {
        let made = at_once(4, |place| {
            let mut rows: Vec<NewRow> =
                (0..50).map(|n| of_input(&world, 1000 * round + n)).collect();
            for (n, row) in rows.iter_mut().enumerate() {
                row.key = Some(key(&format!("{round}-{n}"), 1));
            }
            if place % 2 == 1 {
                rows.reverse();
            }
            let store = world.store.clone();
            async move { store.create(rows, QUIET).await.unwrap() }
        })
        .await;
        let new = made.iter().flatten().filter(|made| **made == Made::New).count();
        assert_eq!(new, 50, "round {round}");
    }
}

async fn the_same_key_answers_the_first_task(world: World) {
    let first = with_key(&world, 1);
    assert_eq!(create(&world, &first).await, Made::New);
    assert_eq!(create(&world, &with_key(&world, 1)).await, Made::Existing(first.id));
    let other = NewRow { key: Some(key("another", 1)), ..world.row("a") };
    assert_eq!(create(&world, &other).await, Made::New);
    assert_eq!(world.count(TASKS).await, 2);
}

async fn the_same_key_twice_in_one_call_makes_one_task(world: World) {
    let rows = vec![with_key(&world, 1), with_key(&world, 1), world.row("a")];
    let first = rows[0].id;
    let made = world.create(rows, QUIET).await.unwrap();
    assert_eq!(made, [Made::New, Made::Existing(first), Made::New]);
    assert_eq!(world.count(TASKS).await, 2);
}

async fn a_call_with_a_key_of_another_request_makes_nothing(world: World) {
    let within = vec![world.row("a"), with_key(&world, 1), with_key(&world, 2)];
    is_reused(&world.create(within, QUIET).await);
    create(&world, &with_key(&world, 1)).await;
    let before = vec![world.row("a"), with_key(&world, 2), of_input(&world, 1)];
    is_reused(&world.create(before, QUIET).await);
    assert_eq!(world.count(TASKS).await, 1);
}

async fn a_key_of_another_request_is_refused(world: World) {
    let first = with_key(&world, 1);
    create(&world, &first).await;
    let refused = with_key(&world, 2);
    is_reused(&world.create(vec![refused.clone()], QUIET).await);
    assert_eq!(world.task(refused.id).await.unwrap(), None);
    assert_eq!(create(&world, &with_key(&world, 1)).await, Made::Existing(first.id));
}

async fn a_key_of_another_request_is_refused_whatever_its_input_is(world: World) {
    create(&world, &of_input(&world, 7)).await;
    create(&world, &with_key(&world, 1)).await;
    let refused = NewRow { input_hash: Some(hash(7)), ..with_key(&world, 2) };
    is_reused(&world.create(vec![refused.clone()], QUIET).await);
}

async fn twenty_creators_with_one_key_make_one_task(world: World) {
    let rows: Vec<NewRow> = (0..20).map(|_| with_key(&world, 1)).collect();
    let made = at_once(20, |place| {
        let (store, row) = (world.store.clone(), rows[place].clone());
        async move { store.create(vec![row], QUIET).await.unwrap().remove(0) }
    })
    .await;
    let winner = made.iter().position(|made| *made == Made::New).unwrap();
    for (place, made) in made.iter().enumerate().filter(|(place, _)| *place != winner) {
        assert_eq!(*made, Made::Existing(rows[winner].id), "creator {place}");
    }
    assert_eq!(world.count(TASKS).await, 1);
}

async fn a_key_whose_input_was_taken_belongs_to_the_task_of_that_input(world: World) {
    let first = of_input(&world, 1);
    create(&world, &first).await;
    let loser = NewRow { input_hash: Some(hash(1)), ..with_key(&world, 1) };
    assert_eq!(create(&world, &loser).await, Made::Existing(first.id));
    assert_eq!(world.count(TASKS).await, 1);
    // The key alone, without the hash, must find it as well, and not a task that never was.
    assert_eq!(create(&world, &with_key(&world, 1)).await, Made::Existing(first.id));
    is_reused(&world.create(vec![with_key(&world, 2)], QUIET).await);
}

async fn a_key_whose_input_is_taken_within_its_call_belongs_to_that_task(world: World) {
    let first = of_input(&world, 1);
    let loser = NewRow { input_hash: Some(hash(1)), ..with_key(&world, 1) };
    let rows = vec![first.clone(), loser, with_key(&world, 1)];
    let made = world.create(rows, QUIET).await.unwrap();
    assert_eq!(made, [Made::New, Made::Existing(first.id), Made::Existing(first.id)]);
    assert_eq!(create(&world, &with_key(&world, 1)).await, Made::Existing(first.id));
}

async fn a_key_goes_with_its_task(world: World) {
    let first = with_key(&world, 1);
    create(&world, &first).await;
    assert_eq!(world.remove(vec![(first.id, 0)]).await.unwrap(), 1);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.task_keys").await, 0);
    assert_eq!(create(&world, &with_key(&world, 2)).await, Made::New);
    assert_eq!(world.count(TASKS).await, 1);
}

async fn a_key_whose_task_is_gone_belongs_to_the_task_of_its_input(world: World) {
    // As when the key was written and its task lost against an input.
    let second = of_input(&world, 1);
    assert_eq!(create(&world, &second).await, Made::New);
    let lost = NewRow { input_hash: Some(hash(1)), ..with_key(&world, 1) };
    let insert = format!(
        "INSERT INTO kodus_workflow.task_keys (key, fingerprint, task_id)
         VALUES ('k', '{}', '{}')",
        hash(1),
        lost.id
    );
    world.execute(&insert).await;
    let again = NewRow { input_hash: Some(hash(1)), ..with_key(&world, 1) };
    assert_eq!(create(&world, &again).await, Made::Existing(second.id));
    assert_eq!(create(&world, &with_key(&world, 1)).await, Made::Existing(second.id));
}

async fn a_key_without_its_task_does_not_keep_it_from_being_made(world: World) {
    // As when the key was written, its task lost against an input, and that one was removed.
    let row = with_key(&world, 1);
    let insert = format!(
        "INSERT INTO kodus_workflow.task_keys (key, fingerprint, task_id)
         VALUES ('k', '{}', '{}')",
        hash(1),
        row.id
    );
    world.execute(&insert).await;
    assert_eq!(create(&world, &row).await, Made::New);
    assert_eq!(create(&world, &with_key(&world, 1)).await, Made::Existing(row.id));
}
