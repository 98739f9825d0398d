//! The bank: adding, finding and counting missions.

use jiff::civil::date;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{Checkpoint, MediaType, MissionId, MissionStatus, Waiting};
use lavra_fleet::store::{Counts, Filter, NewMission};

use crate::support::{World, at_once, on_each_store, storing, these};

on_each_store!(
    a_new_mission_is_in_the_bank_as_it_was_given,
    the_same_mission_is_added_once_unless_it_is_wanted_again,
    two_that_add_the_same_at_once_add_it_once,
    missions_come_newest_first_page_by_page,
    all_conditions_of_a_filter_hold,
    counts_say_how_far_missions_are,
);

async fn a_new_mission_is_in_the_bank_as_it_was_given(world: World) {
    let new = world.new_mission(3);
    world.store.add_missions(vec![new.clone()], false).await.unwrap();
    let mission = world.mission(&new.id).await;
    assert_eq!((mission.date_start, mission.date_end), (new.date_start, new.date_end));
    assert_eq!((mission.media_type, &mission.languages), (new.media_type, &new.languages));
    assert_eq!((mission.status, mission.checkpoint), (MissionStatus::Queued, None));
    assert_eq!((mission.queued_at, mission.token, mission.held_by), (None, None, None));
    assert_eq!((mission.attempts, mission.retry_count), (0, 0));
    assert!(world.log_of(&new.id).await.is_empty());
}

async fn the_same_mission_is_added_once_unless_it_is_wanted_again(world: World) {
    let first = world.new_mission(0);
    let same = NewMission { id: MissionId::new(world.store.clock()), ..first.clone() };
    let other_days = world.new_mission(1);
    let other_media = NewMission { media_type: MediaType::Video, ..world.new_mission(0) };
    let other_languages = NewMission { languages: vec!["en".into()], ..world.new_mission(0) };
    let all = [&first, &same, &other_days, &other_media, &other_languages];
    let added = world.store.add_missions(all.map(Clone::clone).to_vec(), false).await.unwrap();
    assert_eq!(
        added,
        [&first, &other_days, &other_media, &other_languages].map(|new| new.id.clone())
    );
    let again = NewMission { id: MissionId::new(world.store.clock()), ..first.clone() };
    assert_eq!(world.store.add_missions(vec![again.clone()], false).await.unwrap(), []);
    let added = world.store.add_missions(vec![again.clone()], true).await.unwrap();
    assert_eq!(added, [again.id]);
    assert_eq!(world.store.add_missions(Vec::new(), false).await.unwrap(), []);
}

async fn two_that_add_the_same_at_once_add_it_once(world: World) {
    let added = at_once(8, |_| {
        let (store, new) = (world.store.clone(), world.new_mission(0));
        async move { store.add_missions(vec![new], false).await.unwrap().len() }
    });
    assert_eq!(added.await.iter().sum::<usize>(), 1);
}

async fn missions_come_newest_first_page_by_page(world: World) {
    let mut ids = world.bank(5).await;
    ids.reverse();
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = world.store.missions(&Filter::default(), before, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        seen.extend(page.iter().map(|mission| mission.id.clone()));
    }
    assert_eq!(seen, ids);
    assert!(world.store.missions(&Filter::default(), None, 0).await.unwrap().is_empty());
}

async fn all_conditions_of_a_filter_hold(world: World) {
    let worker = world.add_worker("w").await;
    let bank = world.bank(2).await;
    let queued = world.queue(1).await;
    let failed = world
        .put(|mission| {
            mission.status = MissionStatus::Failed;
            mission.checkpoint = Some(Checkpoint::Extracao);
            mission.error_code = Some(ErrorCode::Error203);
            mission.error_message = Some("the page said 100% _Done_ and no more".into());
            mission.waiting = Some(Waiting::Writer);
            mission.worker_id = Some(worker.clone());
        })
        .await
        .id;
    let video = NewMission {
        media_type: MediaType::Video,
        languages: vec!["fr".into()],
        ..world.new_mission(100)
    };
    world.store.add_missions(vec![video.clone()], false).await.unwrap();
    let any = Filter::default();
    let checks: Vec<(Filter, Vec<&MissionId>)> = vec![
        (Filter { status: Some(MissionStatus::Failed), ..any.clone() }, vec![&failed]),
        (Filter { waiting: Some(Waiting::Writer), ..any.clone() }, vec![&failed]),
        (Filter { waiting: Some(Waiting::Proxy), ..any.clone() }, vec![]),
        (Filter { search: Some("_done_ AND".into()), ..any.clone() }, vec![&failed]),
        (Filter { search: Some("100% _D%".into()), ..any.clone() }, vec![]),
        (Filter { search: Some("error20".into()), ..any.clone() }, vec![&failed]),
        (Filter { search: Some(video.id.0.clone()), ..any.clone() }, vec![&video.id]),
        (Filter { search: Some(video.id.0[1..].into()), ..any.clone() }, vec![]),
        (Filter { in_bank: Some(true), ..any.clone() }, vec![&video.id, &bank[1], &bank[0]]),
        (Filter { in_bank: Some(false), ..any.clone() }, vec![&failed, &queued[0]]),
        (Filter { checkpoint: Some(Checkpoint::Atribuido), ..any.clone() }, vec![&queued[0]]),
        (Filter { error_code: Some(ErrorCode::Error203), ..any.clone() }, vec![&failed]),
        (Filter { error_code: Some(ErrorCode::Error100), ..any.clone() }, vec![]),
        (Filter { media_type: Some(MediaType::Video), ..any.clone() }, vec![&video.id]),
        (Filter { language: Some("fr".into()), ..any.clone() }, vec![&video.id]),
        (Filter { worker: Some(worker), ..any.clone() }, vec![&failed]),
        (Filter { from: Some(date(2025, 4, 11)), ..any.clone() }, vec![&video.id]),
        (
            Filter { from: Some(date(2025, 1, 2)), to: Some(date(2025, 1, 3)), ..any.clone() },
            vec![&bank[1]],
        ),
        (
            Filter { status: Some(MissionStatus::Queued), ..these(std::slice::from_ref(&failed)) },
            vec![],
        ),
        (these(&["mis_nobody".into()]), vec![]),
    ];
    for (filter, expected) in checks {
        let found = world.store.missions(&filter, None, 100).await.unwrap();
        let found: Vec<&MissionId> = found.iter().map(|mission| &mission.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}

async fn counts_say_how_far_missions_are(world: World) {
    assert!(!world.store.counts().await.unwrap().has_work());
    world.bank(3).await;
    world.queue(2).await;
    world.put(storing).await;
    for (status, count) in [
        (MissionStatus::Running, 1),
        (MissionStatus::Completed, 2),
        (MissionStatus::Failed, 3),
        (MissionStatus::Canceled, 4),
    ] {
        for _ in 0..count {
            world.put(|mission| mission.status = status).await;
        }
    }
    let counts = world.store.counts().await.unwrap();
    let expected = Counts {
        bank: 3,
        queued: 2,
        extracao: 1,
        armazenamento: 1,
        completed: 2,
        failed: 3,
        canceled: 4,
    };
    assert_eq!(counts, expected);
}
