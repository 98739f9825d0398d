//! Whole runs, against a source on paper.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use lavra_extract::client::Client;
use lavra_extract::event::{Event, Summary};
use lavra_extract::host::Host;
use lavra_extract::machine::Happening;
use lavra_extract::model::{Extraction, ExtractionId, Status};
use lavra_extract::plan::Wanted;
use lavra_extract::reading::Trouble;
use lavra_extract::source::{Means, Rule, Source};
use lavra_extract::store::{Held, Scope};
use lavra_extract::{Extractor, Settings};
use lavra_testkit::on_each_engine;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::paper::{Fault, Paper, reply};
use crate::support::{NAME, World, window};

on_each_engine!(
    a_run_fetches_every_record_once_and_the_next_one_asks_for_nothing,
    an_empty_month_is_complete,
    failures_are_tried_again_and_kept,
    a_total_that_grows_ends_complete_with_the_right_records,
    a_total_that_shrinks_ends_complete_with_the_right_records,
    a_run_that_is_stopped_leaves_partial_and_the_next_goes_on_from_there,
    pages_that_cannot_be_had_are_left_and_told,
    a_refusal_fails_the_task_and_no_other,
    three_runs_share_a_plan,
    a_page_that_is_short_is_told_after_three_discoveries,
    a_total_of_a_billion_is_asked_for_again_and_then_refused,
    a_total_beyond_all_numbers_on_a_later_page_is_one_that_moved,
    pages_of_another_size_are_counted_anew,
    what_is_refused_twice_is_refused_and_what_is_once_is_not,
    nothing_that_is_no_text_is_kept_as_text,
    another_number_of_pages_than_the_total_makes_is_told,
    a_snapshot_of_a_month_that_is_over_is_left_as_it_was,
    a_month_that_is_not_over_is_fetched_again_by_the_next_run,
);

pub(crate) fn quiet() -> Fault {
    Box::new(|_, _| None)
}

fn settings() -> Settings {
    let breaker =
        lavra_extract::breaker::Settings { silence: Duration::from_secs(5), ..Default::default() };
    Settings {
        backoff: Duration::from_millis(5),
        longest_backoff: Duration::from_millis(50),
        breaker,
        ..Settings::default()
    }
}

pub(crate) fn wanted() -> Wanted {
    let (from, to) = ("2024-01".parse().unwrap(), "2024-02".parse().unwrap());
    Wanted { from, to, endpoints: vec![NAME.into()] }
}

pub(crate) struct Ran {
    pub(crate) summary: Summary,
    events: Vec<Event>,
}

/// The source, with small pages.
pub(crate) fn source() -> Source {
    let mut source = Source::built_in("pncp").unwrap().unwrap();
    source.limits.in_flight = 8;
    for endpoint in &mut source.endpoints {
        endpoint.page_size = endpoint.page_size.min(10);
    }
    source
}

pub(crate) async fn extractor(
    world: &World,
    paper: &Arc<Paper>,
    stop: CancellationToken,
) -> (Extractor, mpsc::UnboundedReceiver<Event>) {
    let (source, settings) = (source(), settings());
    let (events, heard) = mpsc::unbounded_channel();
    let extractor = Extractor {
        store: Arc::clone(&world.store),
        host: Host::new(source.limits.in_flight, settings.breaker),
        source: Arc::new(source),
        client: Arc::clone(paper) as _,
        process: world.process().await,
        pulse: lavra_tasks::Pulse::default(),
        run: "test".into(),
        asked_at: world.store.clock().now(),
        settings,
        events,
        stop,
    };
    (extractor, heard)
}

async fn run(world: &World, paper: &Arc<Paper>, stop: CancellationToken) -> Ran {
    run_of(source(), world, paper, stop).await
}

async fn run_of(source: Source, world: &World, paper: &Arc<Paper>, stop: CancellationToken) -> Ran {
    let (mut extractor, mut heard) = extractor(world, paper, stop).await;
    extractor.source = Arc::new(source);
    let summary = extractor.run(&wanted(), false).await.unwrap();
    let mut events = Vec::new();
    while let Ok(event) = heard.try_recv() {
        events.push(event);
    }
    Ran { summary, events }
}

pub(crate) async fn whole(world: &World, paper: &Arc<Paper>) -> Ran {
    run(world, paper, CancellationToken::new()).await
}

/// The keys of all records that count, with how often each stands there.
async fn records(world: &World, month: i8) -> Vec<i64> {
    let task = world.task(month).await;
    let sql: &'static str = match world.database() {
        lavra_db::Database::Duck(_) => {
            "SELECT string_agg(k, ',' ORDER BY k::INT) FROM (
                 SELECT p.task_id, unnest(json_extract_string(r.response_content,
                     '$.data[*].numeroControlePNCP')) AS k
                 FROM psa.pncp_pages p JOIN psa.pncp_raw_responses r ON r.id = p.response_id
             ) WHERE task_id = '{task}'"
        }
        lavra_db::Database::Postgres(_) => {
            "SELECT string_agg(k, ',' ORDER BY k::INT) FROM (
                 SELECT p.task_id, d->>'numeroControlePNCP' AS k
                 FROM psa.pncp_pages p JOIN psa.pncp_raw_responses r ON r.id = p.response_id,
                      json_array_elements(r.response_content::json->'data') d
             ) x WHERE task_id = '{task}'"
        }
    };
    let sql = sql.replace("{task}", &task.task_id.0).leak();
    world.ask(sql).await.split(',').map(|key| key.parse().unwrap()).collect()
}

fn assert_complete(task: &Extraction) {
    assert_eq!(
        (task.status, task.verdict.as_deref()),
        (Status::Complete, Some("exact")),
        "{task:?}"
    );
    assert_eq!((task.process, task.last_error.as_deref()), (None, None));
}

async fn a_run_fetches_every_record_once_and_the_next_one_asks_for_nothing(world: World) {
    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20240101", 95);
    paper.set("20240201", 7);
    let ran = whole(&world, &paper).await;
    let (complete, pages, records_) =
        (ran.summary.complete, ran.summary.pages, ran.summary.records);
    assert_eq!((complete, pages, records_), (2, 11, 102), "{ran:?}", ran = ran.summary);
    assert_eq!((ran.summary.requests, ran.summary.again), (11, 0));
    for month in [1, 2] {
        assert_complete(&world.task(month).await);
    }
    assert_eq!(records(&world, 1).await, (0..95).collect::<Vec<_>>());
    assert_eq!(records(&world, 2).await, (0..7).collect::<Vec<_>>());
    assert!(matches!(ran.events[0], Event::Planned { tasks: 2, new: 2 }));
    let ended = ran.events.iter().filter(|event| matches!(event, Event::TaskEnded { .. }));
    assert_eq!(ended.count(), 2);

    let again = whole(&world, &paper).await;
    assert_eq!((again.summary.requests, again.summary.complete), (0, 2));
    assert_eq!(paper.requests(), 11);
}

async fn an_empty_month_is_complete(world: World) {
    let paper = Arc::new(Paper::new(quiet()));
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.complete, ran.summary.requests), (2, 2));
    let task = world.task(1).await;
    assert_complete(&task);
    assert_eq!((task.total_pages, task.total_records), (Some(0), Some(0)));
}

async fn failures_are_tried_again_and_kept(world: World) {
    let html = "<html>Limite de Requisições Excedido</html>";
    let paper = Arc::new(Paper::new(Box::new(move |request, _| match request % 5 {
        0 => Some(Ok(reply(500, r#"{"message":"Erro na comunicação com o banco de dados"}"#))),
        2 if request.is_multiple_of(3) => Some(Ok(reply(429, html))),
        3 if request.is_multiple_of(2) => Some(Err(Trouble::Connection("reset".into()))),
        4 if request.is_multiple_of(7) => Some(Ok(reply(200, html))),
        _ => None,
    })));
    paper.set("20240101", 300);
    paper.set("20240201", 41);
    let ran = whole(&world, &paper).await;
    assert_eq!(ran.summary.complete, 2, "{:?}", ran.summary);
    assert_eq!(records(&world, 1).await, (0..300).collect::<Vec<_>>());
    let failures: u64 = ran.summary.failures.values().sum();
    assert!(failures > 5, "{:?}", ran.summary);
    let rows =
        world.ask("SELECT count(*) FROM psa.pncp_raw_responses WHERE outcome = 'failed'").await;
    assert_eq!(rows, failures.to_string(), "each is a row");
    assert!(paper.given().values().all(|times| *times == 1), "{:?}", paper.given());
}

async fn a_total_that_grows_ends_complete_with_the_right_records(world: World) {
    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20240101", 95);
    paper.set("20240201", 3);
    paper.change_at(7, "20240101", |records| records.insert(0, 1000));
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.complete, ran.summary.drifts), (2, 1), "{:?}", ran.summary);
    assert!(ran.summary.again > 0);
    let mut truth = paper.records("20240101");
    truth.sort_unstable();
    assert_eq!(records(&world, 1).await, truth);
    let drifted = |event: &Event| matches!(event, Event::Drifted { from: 95, to: 96, .. });
    assert!(ran.events.iter().any(drifted));
}

async fn a_total_that_shrinks_ends_complete_with_the_right_records(world: World) {
    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20240101", 95);
    paper.change_at(6, "20240101", |records| {
        records.drain(10..40);
    });
    let ran = whole(&world, &paper).await;
    assert_eq!(ran.summary.complete, 2, "{:?}", ran.summary);
    let task = world.task(1).await;
    assert_complete(&task);
    assert_eq!((task.total_pages, task.total_records), (Some(7), Some(65)));
    let counted = world
        .ask(
            "SELECT sum(p.records) FROM psa.pncp_pages p
              JOIN psa.pncp_extraction_tasks t USING (task_id) WHERE p.page <= t.total_pages",
        )
        .await;
    assert_eq!(counted, "65");
}

async fn a_run_that_is_stopped_leaves_partial_and_the_next_goes_on_from_there(world: World) {
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    let paper = Arc::new(Paper::new(Box::new(move |request, _| {
        if request == 20 {
            stopper.cancel();
        }
        None
    })));
    paper.set("20240101", 400);
    paper.set("20240201", 100);
    let ran = run(&world, &paper, stop).await;
    assert!(ran.summary.is_interrupted && ran.summary.is_short(), "{:?}", ran.summary);
    let task = world.task(1).await;
    assert_eq!((task.status, task.process), (Status::Partial, None));
    let missing = world.ask("SELECT count(*) FROM psa.pncp_missing_pages").await;
    assert!(missing.parse::<i64>().unwrap() > 10, "{missing}");

    let rest = whole(&world, &paper).await;
    assert_eq!(rest.summary.complete, 2, "{:?}", rest.summary);
    assert_eq!(records(&world, 1).await, (0..400).collect::<Vec<_>>());
    assert!(paper.given().values().all(|times| *times == 1), "a page was asked for again");
    assert_eq!((rest.summary.again, paper.requests()), (0, 50));
}

async fn pages_that_cannot_be_had_are_left_and_told(world: World) {
    let paper = Arc::new(Paper::new(Box::new(|_, page| {
        (page == 4).then(|| Ok(reply(500, r#"{"message":"always"}"#)))
    })));
    paper.set("20240101", 95);
    paper.set("20240201", 25);
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.complete, ran.summary.partial), (1, 1), "{:?}", ran.summary);
    let task = world.task(1).await;
    assert_eq!(task.status, Status::Partial);
    assert_eq!(task.last_error.as_deref(), Some("1 pages could not be had: status 500: always"));
    assert_eq!(world.ask("SELECT page_number FROM psa.pncp_missing_pages").await, "4");
    assert_eq!(ran.summary.failures["server"], 12);
}

async fn a_refusal_fails_the_task_and_no_other(world: World) {
    let paper = Arc::new(Paper::new(Box::new(|request, page| {
        let body = r#"{"message":"Tamanho de página inválido"}"#;
        (page == 1 && request == 1).then(|| Ok(reply(400, body)))
    })));
    paper.set("20240101", 25);
    paper.set("20240201", 25);
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.complete, ran.summary.failed), (1, 1), "{:?}", ran.summary);
    let (one, two) = (world.task(1).await, world.task(2).await);
    let failed = if one.status == Status::Failed { one } else { two };
    assert_eq!(failed.last_error.as_deref(), Some("status 400: Tamanho de página inválido"));
    assert!(failed.next_attempt_at.is_some(), "it is taken up again a day later");
    let again = whole(&world, &paper).await;
    assert_eq!((again.summary.requests, again.summary.failed), (0, 1), "not before");
}

async fn three_runs_share_a_plan(world: World) {
    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20240101", 333);
    paper.set("20240201", 222);
    let runs = (whole(&world, &paper), whole(&world, &paper), whole(&world, &paper));
    let (one, two, three) = tokio::join!(runs.0, runs.1, runs.2);
    for ran in [&one, &two, &three] {
        assert_eq!(ran.summary.complete, 2, "{:?}", ran.summary);
    }
    let requests: u64 = [one, two, three].iter().map(|ran| ran.summary.requests).sum();
    assert_eq!((requests, paper.requests()), (57, 57));
    assert!(paper.given().values().all(|times| *times == 1));
    assert_eq!(records(&world, 2).await, (0..222).collect::<Vec<_>>());
}

async fn a_page_that_is_short_is_told_after_three_discoveries(world: World) {
    let paper = Arc::new(Paper::new(Box::new(|_, page| {
        let body = r#"{"data":[{"numeroControlePNCP":1}],"totalRegistros":25}"#;
        (page == 2).then(|| Ok(reply(200, body)))
    })));
    paper.set("20240101", 25);
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.complete, ran.summary.partial), (1, 1), "{:?}", ran.summary);
    let task = world.task(1).await;
    assert_eq!((task.status, task.discoveries), (Status::Partial, 3));
    assert_eq!(task.last_error.as_deref(), Some("short by 9"));
}

async fn a_total_of_a_billion_is_asked_for_again_and_then_refused(world: World) {
    let wild = r#"{"data":[{"numeroControlePNCP":1}],"totalRegistros":1000000000}"#;
    let paper = Arc::new(Paper::new(Box::new(move |request, _| {
        (request <= 3).then(|| Ok(reply(200, wild)))
    })));
    paper.set("20240101", 25);
    paper.set("20240201", 25);
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.complete, ran.summary.failed), (1, 1), "{:?}", ran.summary);
    let (one, two) = (world.task(1).await, world.task(2).await);
    let failed = if one.status == Status::Failed { one } else { two };
    let error = failed.last_error.unwrap();
    assert!(error.starts_with("it announces 1000000000 records in 100000000 pages"), "{error}");
    assert_eq!(world.ask("SELECT count(DISTINCT task_id) FROM psa.pncp_pages").await, "1");
}

async fn a_total_beyond_all_numbers_on_a_later_page_is_one_that_moved(world: World) {
    let told = std::sync::atomic::AtomicBool::new(false);
    let paper = Arc::new(Paper::new(Box::new(move |_, page| {
        let is_first = page == 3 && !told.swap(true, std::sync::atomic::Ordering::Relaxed);
        let records = ["{}"; 10].join(",");
        let body = format!(
            r#"{{"data":[{records}],"totalRegistros":9000000000000000000,"totalPaginas":90000000000}}"#
        );
        is_first.then(|| Ok(reply(200, body)))
    })));
    paper.set("20240101", 45);
    paper.set("20240201", 5);
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.complete, ran.summary.drifts), (2, 1), "{:?}", ran.summary);
    assert_eq!(records(&world, 1).await, (0..45).collect::<Vec<_>>());
}

/// The source is asked for smaller pages after a run was stopped in the middle.
async fn pages_of_another_size_are_counted_anew(world: World) {
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    let paper = Arc::new(Paper::new(Box::new(move |request, _| {
        if request == 6 {
            stopper.cancel();
        }
        None
    })));
    paper.set("20240101", 395);
    let ran = run(&world, &paper, stop).await;
    assert!(ran.summary.is_short(), "{:?}", ran.summary);
    let mut smaller = source();
    smaller.endpoints.iter_mut().for_each(|endpoint| endpoint.page_size = 4);
    let ran = run_of(smaller, &world, &paper, CancellationToken::new()).await;
    assert_eq!(ran.summary.complete, 2, "{:?}", ran.summary);
    let task = world.task(1).await;
    assert_complete(&task);
    assert_eq!((task.total_pages, task.total_records), (Some(99), Some(395)));
    assert_eq!(records(&world, 1).await, (0..395).collect::<Vec<_>>());
}

async fn what_is_refused_twice_is_refused_and_what_is_once_is_not(world: World) {
    let refusal = || Some(Ok(reply(422, r#"{"message":"Parâmetro inválido"}"#)));
    let month = Wanted { to: "2024-01".parse().unwrap(), ..wanted() };
    // A failure of another kind, then a refusal, and then it is there.
    let paper = Arc::new(Paper::new(Box::new(move |request, _| match request {
        1 => Some(Ok(reply(500, "{}"))),
        2 => refusal(),
        _ => None,
    })));
    paper.set("20240101", 25);
    let (once, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    let ran = once.run(&month, false).await.unwrap();
    assert_eq!((ran.complete, ran.failed, ran.requests), (1, 0, 5), "{ran:?}");

    let always = Arc::new(Paper::new(Box::new(move |_, _| refusal())));
    let (twice, _heard) = extractor(&world, &always, CancellationToken::new()).await;
    let ran = twice.run(&month, true).await.unwrap();
    assert_eq!((ran.failed, ran.requests), (1, 2), "{ran:?}");
    let error = world.task(1).await.last_error;
    assert_eq!(error.as_deref(), Some("status 422: Parâmetro inválido"));
}

async fn nothing_that_is_no_text_is_kept_as_text(world: World) {
    let mut source = source();
    source.rules.push(Rule {
        status: 404,
        page: None,
        contains: None,
        without_body: false,
        means: Means::Empty,
        after: 0,
    });
    let latin: &[u8] = b"n\xe3o h\xe1 nada\0";
    let paper = Arc::new(Paper::new(Box::new(move |_, _| Some(Ok(reply(404, latin))))));
    let ran = run_of(source, &world, &paper, CancellationToken::new()).await;
    assert_eq!((ran.summary.complete, ran.summary.requests), (2, 2), "{:?}", ran.summary);
    let kept = world.ask("SELECT min(response_content) FROM psa.pncp_raw_responses").await;
    assert_eq!(kept, "n\u{FFFD}o h\u{FFFD} nada\u{FFFD}");
}

async fn another_number_of_pages_than_the_total_makes_is_told(world: World) {
    let paper = Arc::new(Paper::new(Box::new(|_, page| {
        let body = r#"{"data":[{"numeroControlePNCP":1}],"totalRegistros":1,"totalPaginas":7}"#;
        (page == 1).then(|| Ok(reply(200, body)))
    })));
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.complete, ran.summary.records), (2, 2), "the total counts");
    let differ =
        |event: &&Event| matches!(event, Event::PagesDiffer { announced: 7, counted: 1, .. });
    assert_eq!(ran.events.iter().filter(differ).count(), 2);
}

async fn a_snapshot_of_a_month_that_is_over_is_left_as_it_was(world: World) {
    let zone = TimeZone::get("America/Sao_Paulo").unwrap();
    let today = jiff::Timestamp::now().to_zoned(zone).date();
    let then = today.first_of_month().saturating_sub(jiff::Span::new().months(2));
    let row = format!(
        "INSERT INTO psa.pncp_extraction_tasks (task_id, endpoint_name, data_date, status)
         VALUES ('long ago', 'contratacoes_proposta', '{then}', 'COMPLETE')"
    );
    world.meddle(row.leak()).await;
    let paper = Arc::new(Paper::new(quiet()));
    let wanted = Wanted {
        from: then.strftime("%Y-%m").to_string().parse().unwrap(),
        to: "2100-01".parse().unwrap(),
        endpoints: vec![NAME.into(), "contratacoes_proposta".into()],
    };
    for refresh in [false, true] {
        let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
        let ran = extractor.run(&wanted, refresh).await.unwrap();
        assert_eq!((ran.complete, ran.requests), (5, 4), "{ran:?}: three months, and today");
    }
    let long_ago = "SELECT generation FROM psa.pncp_extraction_tasks WHERE task_id = 'long ago'";
    assert_eq!(world.ask(long_ago).await, "1");
}

async fn a_month_that_is_not_over_is_fetched_again_by_the_next_run(world: World) {
    let zone = TimeZone::get("America/Sao_Paulo").unwrap();
    let first = jiff::Timestamp::now().to_zoned(zone).date().first_of_month();
    let month: lavra_extract::Month = first.strftime("%Y-%m").to_string().parse().unwrap();
    let wanted = Wanted { from: month, to: month, endpoints: vec![NAME.into()] };
    let (paper, day) = (Arc::new(Paper::new(quiet())), first.strftime("%Y%m%d").to_string());
    let scope = Scope { endpoints: vec![NAME.into()], from: first, to: first };
    // It grows, stays, and shrinks.
    for (generation, count) in [(1, 15), (2, 38), (3, 38), (4, 7)] {
        paper.set(&day, count);
        let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
        let ran = extractor.run(&wanted, false).await.unwrap();
        let pages = (count as u64).div_ceil(10);
        assert_eq!((ran.complete, ran.requests), (1, pages), "{ran:?}");
        let task = world.store.tasks(&scope).await.unwrap().remove(0);
        assert_complete(&task);
        assert_eq!((task.generation, task.is_final), (generation, false), "{task:?}");
        assert_eq!(task.total_records, Some(count));
        let bodies = world.bodies(&task.task_id).await;
        let records = bodies.iter().map(|body| body.matches("numeroControlePNCP").count());
        assert_eq!(records.sum::<usize>() as i64, count);
    }
    let kept = world.ask("SELECT count(*) FROM psa.pncp_raw_responses").await;
    assert_eq!(kept, "7", "what came as it was is not stored again");
}

/// From the sixteenth of a month until after it: the last fetch is the one that stays.
#[tokio::test(start_paused = true)]
async fn a_month_is_fetched_once_more_when_it_is_over_and_then_never() {
    let world = World::in_memory();
    let month = "2026-11".parse().unwrap();
    let wanted = Wanted { from: month, to: month, endpoints: vec![NAME.into()] };
    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20261101", 15);
    let id = ExtractionId::new(NAME, month.first());
    for (days, requests, is_final) in [(0, 2, false), (20, 2, true), (30, 0, true)] {
        tokio::time::sleep(Duration::from_secs(days * 24 * 3600)).await;
        let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
        let ran = extractor.run(&wanted, false).await.unwrap();
        assert_eq!((ran.complete, ran.requests), (1, requests), "after {days} days: {ran:?}");
        let task = world.store.task(&id).await.unwrap().unwrap();
        assert_eq!(task.is_final, is_final, "after {days} days");
    }
}

/// Answers every request with one record that is long.
async fn long_winded(length: usize) -> url::Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let record = format!(r#"{{"numeroControlePNCP":1,"objeto":"{}"}}"#, "x".repeat(length));
    let body = format!(r#"{{"data":[{record}],"totalRegistros":1}}"#);
    let head =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let answer = Arc::new(head + &body);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _asked = stream.read(&mut request).await;
                let _gone = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    base
}

/// Large bodies are in memory one at a time, and each window begins with one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_that_begin_with_large_pages_do_not_wait_for_each_other() {
    let world = World::on_duckdb().await;
    world.plan(1).await;
    let by = world.process().await;
    let held = Held::Claimed { by, begun: false };
    world.write(world.change(&world.task(1).await, Happening::ClaimedToDiscover, held)).await;
    let error = "too much".into();
    let mut halved = world.change(&world.task(1).await, Happening::Halved { error }, Held::Nobody);
    let mut windows = vec![window(1, None), window(2, None)];
    windows[0].last_day = jiff::civil::date(2024, 1, 15);
    (windows[1].first_day, windows[1].base) = (jiff::civil::date(2024, 1, 16), 100_000);
    halved.change.as_mut().unwrap().windows = Some(windows);
    world.write(halved).await;

    let mut source = source();
    source.base_url = long_winded(9 << 20).await;
    source.limits.timeout = Duration::from_secs(5);
    let (mut extractor, _heard) =
        extractor(&world, &Arc::new(Paper::new(quiet())), CancellationToken::new()).await;
    extractor.client = Arc::new(Client::new(&source, true).unwrap());
    extractor.source = Arc::new(source);
    let month = Wanted { to: "2024-01".parse().unwrap(), ..wanted() };
    let running = tokio::time::timeout(Duration::from_secs(60), extractor.run(&month, false));
    let ran = running.await.expect("they wait for each other").unwrap();
    assert_eq!((ran.complete, ran.pages, ran.records, ran.requests), (1, 2, 2, 2), "{ran:?}");
    assert_eq!(world.bodies(&world.task(1).await.task_id).await.len(), 2);
}

/// What cannot be stored is not asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_store_takes_nothing_more_stops_asking() {
    let world = World::on_postgres().await;
    world.meddle("ALTER TABLE psa.pncp_pages ADD CHECK (page < 3)").await;
    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20240101", 5000);
    paper.set("20240201", 5000);
    let stop = CancellationToken::new();
    let (extractor, _heard) = extractor(&world, &paper, stop.clone()).await;
    let error = extractor.run(&wanted(), false).await.unwrap_err();
    assert!(error.to_string().contains("store"), "{error}");
    assert!(paper.requests() < 400, "{} of 1000 pages were asked for", paper.requests());
    assert!(!stop.is_cancelled(), "others go on");
}
