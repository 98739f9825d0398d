//! What a store must do, on each engine and in memory.

use jiff::SignedDuration;
use lavra_extract::Memory;
use lavra_extract::machine::{Fetched, Happening};
use lavra_extract::model::{Status, Stored, Totals};
use lavra_extract::store::{Held, Outcome, Planned, Want, Write, Written};

use crate::support::{World, on_each_store, scope, window};

on_each_store!(
    a_plan_is_made_once,
    a_claim_has_a_new_token_and_who_had_the_old_one_has_lost,
    what_a_live_process_holds_is_nobody_else_s_until_it_dies,
    what_is_offered_may_be_taken_and_what_is_begun_may_not,
    what_is_to_wait_is_no_candidate_and_what_was_left_comes_first,
    a_page_is_stored_with_its_body_or_not_at_all,
    a_failure_is_kept_and_no_page,
    the_same_content_again_is_not_stored_twice,
    another_content_takes_the_place_of_the_first,
    windows_are_replaced_as_a_whole,
    pages_that_are_missing_can_be_asked_for,
    progress_is_the_sum_of_what_is_stored,
);

/// How many responses are kept.
async fn responses(world: &World) -> String {
    let sql = "SELECT count(*) FROM psa.pncp_raw_responses";
    world.look(sql, |memory| memory.responses().len().to_string()).await
}

/// The id of the response that page 1 stands on.
async fn response_of_page_1(world: &World) -> String {
    let task = world.task(1).await.task_id;
    let sql = "SELECT response_id FROM psa.pncp_pages WHERE page = 1";
    world.look(sql, |memory| memory.response_of(&task, 1).unwrap().id.to_string()).await
}

async fn a_plan_is_made_once(world: World) {
    world.plan(3).await;
    let again: Vec<Planned> = world
        .store
        .tasks(&scope())
        .await
        .unwrap()
        .into_iter()
        .map(|task| Planned {
            task_id: task.task_id,
            endpoint_name: task.endpoint_name,
            data_date: task.data_date,
        })
        .collect();
    assert_eq!(again.len(), 3);
    assert_eq!(again[0].task_id.0, "contratos_publicacao_2024-01-01");
    assert_eq!(world.store.plan(again).await.unwrap(), 0);
    let task = world.task(1).await;
    assert_eq!((task.status, task.token, task.process), (Status::Pending, 0, None));
    assert_eq!((task.discoveries, task.generation, task.attempts), (0, 1, 0));
}

async fn a_claim_has_a_new_token_and_who_had_the_old_one_has_lost(world: World) {
    world.plan(1).await;
    let before = world.task(1).await;
    let (me, other) = (world.process().await, world.process().await);
    let claim = |by| {
        world.change(&before, Happening::ClaimedToDiscover, Held::Claimed { by, begun: false })
    };
    let Written::Applied { token } = world.write(claim(me)).await else { panic!("lost") };
    assert!(token > before.token);
    assert_eq!(world.write(claim(other)).await, Written::Lost);
    let task = world.task(1).await;
    assert_eq!((task.status, task.process, task.token), (Status::Discovering, Some(me), token));
}

async fn what_a_live_process_holds_is_nobody_else_s_until_it_dies(world: World) {
    world.plan(1).await;
    let me = world.process().await;
    let held = Held::Claimed { by: me, begun: false };
    world.write(world.change(&world.task(1).await, Happening::ClaimedToDiscover, held)).await;
    assert!(world.candidates(Want::Discovery).await.is_empty());
    world.retire(me).await;
    assert_eq!(world.candidates(Want::Discovery).await, [world.task(1).await]);
    assert!(world.candidates(Want::Pages).await.is_empty());
}

async fn what_is_offered_may_be_taken_and_what_is_begun_may_not(world: World) {
    let me = world.process().await;
    let task = world.fetching(me).await;
    assert!(world.candidates(Want::Pages).await.is_empty(), "begun");
    world.write(world.change(&task, Happening::ClaimedToFetch, Held::Offered)).await;
    let offered = world.candidates(Want::Pages).await;
    assert_eq!(offered.len(), 1);
    assert_eq!(offered[0].process, Some(me), "still its holder's");
}

async fn what_is_to_wait_is_no_candidate_and_what_was_left_comes_first(world: World) {
    let me = world.process().await;
    world.plan(3).await;
    let failed =
        Happening::DiscoveryFailed { error: "503".into(), wait: SignedDuration::from_secs(60) };
    let held = Held::Claimed { by: me, begun: false };
    world.write(world.change(&world.task(1).await, Happening::ClaimedToDiscover, held)).await;
    world.write(world.change(&world.task(1).await, failed, Held::Nobody)).await;
    let waiting = world.task(1).await;
    assert_eq!((waiting.status, waiting.attempts), (Status::Pending, 1));
    assert!(waiting.next_attempt_at.is_some() && waiting.failing_since.is_some());
    assert_eq!(waiting.last_error.as_deref(), Some("503"));
    let found: Vec<_> = world.candidates(Want::Discovery).await;
    assert_eq!(found.len(), 2, "the first is to wait");

    // One is offered with its pages, the other was left by a run that ended.
    for (month, leave) in [(2, false), (3, true)] {
        world
            .write(world.change(&world.task(month).await, Happening::ClaimedToDiscover, held))
            .await;
        let found = Happening::Discovered { is_over: true };
        world.write(world.change(&world.task(month).await, found, Held::Offered)).await;
        if leave {
            let back = Happening::GivenBack { reason: None };
            world.write(world.change(&world.task(month).await, back, Held::Nobody)).await;
        }
    }
    let found = world.candidates(Want::Pages).await;
    let statuses: Vec<Status> = found.iter().map(|task| task.status).collect();
    assert_eq!(statuses, [Status::Partial, Status::Fetching]);
}

async fn a_page_is_stored_with_its_body_or_not_at_all(world: World) {
    let me = world.process().await;
    let task = world.fetching(me).await;
    assert_eq!((task.total_pages, task.total_records), (Some(3), Some(25)));
    assert!(task.discovered_at.is_some() && task.is_final);
    let write =
        |token, arrivals| Write { task: task.task_id.clone(), token, change: None, arrivals };
    let pages = vec![world.arrival(2, "two", 10), world.arrival(3, "three", 5)];
    assert_eq!(world.write(write(task.token - 1, pages.clone())).await, Written::Lost);
    assert_eq!(responses(&world).await, "1");
    let token = task.token;
    assert_eq!(world.write(write(token, pages)).await, Written::Applied { token });
    let stored = world.store.stored(&task.task_id).await.unwrap();
    let page = |page, records| Stored { page, records, total_records: 25, generation: 1 };
    assert_eq!(stored, [page(1, 10), page(2, 10), page(3, 5)]);
    let body = "SELECT r.response_content FROM psa.pncp_raw_responses r
                JOIN psa.pncp_pages p ON p.response_id = r.id WHERE p.page = 3";
    let kept = |memory: &Memory| memory.response_of(&task.task_id, 3).unwrap();
    let text = |memory: &Memory| String::from_utf8(kept(memory).body.unwrap().into()).unwrap();
    assert_eq!(world.look(body, text).await, r#"{"content":"three — São"}"#);
    let row = "SELECT concat_ws(' ', endpoint_url, endpoint_name, response_code, data_date, run_id,
                   total_records, total_pages, current_page, page_size, outcome, task_id, elapsed_ms)
               FROM psa.pncp_raw_responses WHERE current_page = 3";
    let columns = |memory: &Memory| {
        let kept = kept(memory);
        let (total, pages) = (kept.total_records.unwrap(), kept.total_pages.unwrap());
        let (page, size, elapsed) = (kept.current_page, kept.page_size, kept.elapsed.as_millis());
        let (url, name, code, day, run) =
            (kept.url, kept.endpoint_name, kept.code, kept.data_date, kept.run);
        let task = &task.task_id;
        format!(
            "{url} {name} {code} {day} {run} {total} {pages} {page} {size} data {task} {elapsed}"
        )
    };
    assert_eq!(
        world.look(row, columns).await,
        "http://127.0.0.1/v1/contratos contratos_publicacao 200 2024-01-01 a run 25 3 3 10 data \
         contratos_publicacao_2024-01-01 7"
    );
}

async fn a_failure_is_kept_and_no_page(world: World) {
    let task = world.fetching(world.process().await).await;
    let mut failed = world.arrival(2, "-", 0);
    failed.outcome = Outcome::Failed { error: "status 500".into() };
    failed.code = 500;
    let (id, token) = (task.task_id.clone(), task.token);
    let write = Write { task: id, token, change: None, arrivals: vec![failed] };
    assert_eq!(world.write(write.clone()).await, Written::Applied { token });
    assert_eq!(world.store.stored(&task.task_id).await.unwrap().len(), 1);
    let row = "SELECT concat_ws(' ', outcome, response_code, error) FROM psa.pncp_raw_responses
               WHERE outcome = 'failed'";
    let kept = |memory: &Memory| {
        let responses = memory.responses();
        let failed = responses.iter().find_map(|response| match &response.outcome {
            Outcome::Failed { error } => Some(format!("failed {} {error}", response.code)),
            Outcome::Done(_) => None,
        });
        failed.unwrap()
    };
    assert_eq!(world.look(row, kept).await, "failed 500 status 500");
    // Nobody heard that it was stored.
    assert_eq!(world.write(write).await, Written::Applied { token });
}

async fn the_same_content_again_is_not_stored_twice(world: World) {
    let task = world.fetching(world.process().await).await;
    let first = response_of_page_1(&world).await;
    let mut again = world.arrival(1, "one", 10);
    if let Outcome::Done(done) = &mut again.outcome {
        (done.total_records, done.generation) = (26, 2);
        done.body_hash = "of other bytes".into();
    }
    let fresh = world.arrival(2, "two", 10);
    let (id, token) = (task.task_id.clone(), task.token);
    world.write(Write { task: id, token, change: None, arrivals: vec![again, fresh] }).await;
    assert_eq!(responses(&world).await, "2");
    assert_eq!(response_of_page_1(&world).await, first);
    let stored = world.store.stored(&task.task_id).await.unwrap();
    assert_eq!((stored[0].total_records, stored[0].generation), (26, 2), "seen anew");
    let page = &world.store.pages(&task.task_id).await.unwrap()[0];
    assert_eq!(page.body_hash, "body of one", "of the body that is there");
}

async fn another_content_takes_the_place_of_the_first(world: World) {
    let task = world.fetching(world.process().await).await;
    let other = world.arrival(1, "changed", 9);
    let id = other.id.to_string();
    let (task_id, token) = (task.task_id.clone(), task.token);
    world.write(Write { task: task_id, token, change: None, arrivals: vec![other] }).await;
    assert_eq!(responses(&world).await, "2", "both are kept");
    assert_eq!(response_of_page_1(&world).await, id);
    assert_eq!(world.store.stored(&task.task_id).await.unwrap()[0].records, 9);
}

async fn windows_are_replaced_as_a_whole(world: World) {
    let task = world.fetching(world.process().await).await;
    assert_eq!(
        world.store.windows(&task.task_id).await.unwrap(),
        [window(1, Some(Totals::of(25, 10)))]
    );
    let mut halved = world.change(&task, Happening::ClaimedToFetch, Held::Same);
    let mut second = window(3, Some(Totals::of(7, 10)));
    second.base = 100_000;
    let windows = vec![window(2, None), second];
    halved.change.as_mut().unwrap().windows = Some(windows.clone());
    world.write(halved).await;
    assert_eq!(world.store.windows(&task.task_id).await.unwrap(), windows);
}

async fn pages_that_are_missing_can_be_asked_for(world: World) {
    let task = world.fetching(world.process().await).await;
    let without = Fetched::Without { pages: 2, error: "status 500".into() };
    let mut left = world.change(&task, Happening::Fetched(without), Held::Nobody);
    left.change.as_mut().unwrap().missing = Some(vec![2, 3]);
    world.write(left).await;
    let task = world.task(1).await;
    assert_eq!((task.status, task.process), (Status::Partial, None));
    assert_eq!(task.last_error.as_deref(), Some("2 pages could not be had: status 500"));
    let missing = "SELECT string_agg(task_id || ' ' || page_number, ', ' ORDER BY page_number)
                   FROM psa.pncp_missing_pages";
    let id = &task.task_id;
    let kept = |memory: &Memory| {
        let pages = memory.missing(id).into_iter().map(|page| format!("{id} {page}"));
        pages.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(world.look(missing, kept).await, format!("{id} 2, {id} 3"));
}

async fn progress_is_the_sum_of_what_is_stored(world: World) {
    let task = world.fetching(world.process().await).await;
    let more = vec![world.arrival(3, "three", 5)];
    let (id, token) = (task.task_id.clone(), task.token);
    world.write(Write { task: id, token, change: None, arrivals: more }).await;
    let all = world.store.progress(&scope()).await.unwrap();
    let bytes = r#"{"content":"one — São"}{"content":"three — São"}"#.len() as i64;
    assert_eq!((all.len(), all[0].pages, all[0].records, all[0].bytes), (1, 2, 15, bytes));
}
