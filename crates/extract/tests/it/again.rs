//! What a run leaves alone: what it has refreshed already, what nobody can be asked for any more, hosts
//! that want to be left alone, servers that are somebody else's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lavra_extract::Extractor;
use lavra_extract::client::{Client, Fetch as _};
use lavra_extract::event::Event;
use lavra_extract::model::Status;
use lavra_extract::plan::Wanted;
use lavra_extract::reading::Reply;
use lavra_extract::store::Scope;
use lavra_testkit::on_each_engine;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::paper::{Paper, reply};
use crate::runs::{extractor, quiet, source, wanted, whole};
use crate::support::World;

on_each_engine!(
    a_refresh_that_was_stopped_goes_on_with_what_it_lacks,
    what_is_missing_of_a_snapshot_of_another_month_is_not_asked_for,
    a_run_that_ends_leaves_another_of_its_process_what_it_holds,
);

async fn a_refresh_that_was_stopped_goes_on_with_what_it_lacks(world: World) {
    let stop = CancellationToken::new();
    let told = stop.clone();
    let paper = Arc::new(Paper::new(Box::new(move |request, _| {
        // The first run asks for fifty pages, and half of the refresh is after that.
        if request == 75 {
            told.cancel();
        }
        None
    })));
    paper.set("20240101", 250);
    paper.set("20240201", 250);
    assert_eq!(whole(&world, &paper).await.summary.complete, 2);

    let (first, _heard) = extractor(&world, &paper, stop).await;
    let asked_at = first.asked_at;
    let stopped = first.run(&wanted(), true).await.unwrap();
    assert!(stopped.is_interrupted && stopped.is_short(), "{stopped:?}");
    let (second, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    let rest = Extractor { asked_at, ..second }.run(&wanted(), true).await.unwrap();
    assert_eq!(rest.complete, 2, "{rest:?}");
    let given = paper.given();
    assert!(given.values().all(|times| *times == 2), "refreshed twice: {given:?}");

    // One that is asked for later is another one.
    let (later, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    assert_eq!(later.run(&wanted(), true).await.unwrap().requests, 50);
}

async fn what_is_missing_of_a_snapshot_of_another_month_is_not_asked_for(world: World) {
    let today = jiff::Zoned::now().date();
    let then = today.first_of_month().saturating_sub(jiff::Span::new().months(2));
    let row = format!(
        "INSERT INTO psa.pncp_extraction_tasks (task_id, endpoint_name, data_date, status)
         VALUES ('long ago', 'contratacoes_proposta', '{then}', 'PENDING')"
    );
    world.meddle(row.leak()).await;
    let paper = Arc::new(Paper::new(quiet()));
    for _ in 0..2 {
        let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
        let scope = Scope { endpoints: Vec::new(), from: then, to: today };
        let ran = extractor.retry(scope).await.unwrap();
        assert_eq!((ran.failed, ran.requests), (1, 0), "{ran:?}");
    }
    let why = "SELECT last_error FROM psa.pncp_extraction_tasks WHERE task_id = 'long ago'";
    let why = world.ask(why).await;
    assert!(why.contains("what there is today"), "{why}");
}

/// A server may be at two runs of one source at once.
async fn a_run_that_ends_leaves_another_of_its_process_what_it_holds(world: World) {
    let stop = CancellationToken::new();
    let (reached, mut half) = mpsc::unbounded_channel();
    let paper = Arc::new(Paper::new(Box::new(move |request, _| {
        if request == 30 {
            let _told = reached.send(());
        }
        None
    })));
    paper.set("20240101", 2000);
    let (at_work, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    let (process, month) = (at_work.process, Wanted { to: "2024-01".parse().unwrap(), ..wanted() });
    let running = {
        let month = month.clone();
        tokio::spawn(async move { at_work.run(&month, false).await })
    };
    half.recv().await.unwrap();
    let (mut other, _heard) = extractor(&world, &paper, stop.clone()).await;
    other.process = process;
    stop.cancel();
    assert!(other.run(&month, false).await.unwrap().is_interrupted);
    let ran = running.await.unwrap().unwrap();
    assert_eq!((ran.complete, ran.requests), (1, 200), "{ran:?}");
}

/// The page of somebody else's server is no outage that one waits six hours for.
#[tokio::test(start_paused = true)]
async fn an_address_that_never_makes_sense_is_given_up_soon() {
    let world = World::in_memory();
    let page = || Ok(reply(200, "<html>Welcome!</html>"));
    let paper = Arc::new(Paper::new(Box::new(move |_, _| Some(page()))));
    let begun = tokio::time::Instant::now();
    let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    let ran = extractor.run(&wanted(), false).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(900), "{:?}", begun.elapsed());
    assert_eq!((ran.pending, ran.failed), (2, 0), "{ran:?}");
    let task = world.task(1).await;
    assert_eq!(task.status, Status::Pending);
    assert!(task.last_error.as_ref().unwrap().contains("is the address right"), "{task:?}");
}

/// One that has made sense is waited for.
#[tokio::test(start_paused = true)]
async fn an_hour_of_somebody_else_s_pages_is_an_outage_where_there_was_an_answer_before() {
    let world = World::in_memory();
    let begun = tokio::time::Instant::now();
    let paper = Arc::new(Paper::new(Box::new(move |request, _| {
        let is_down = request > 5 && begun.elapsed() < Duration::from_secs(3600);
        is_down.then(|| Ok(reply(200, "<html>Maintenance</html>")))
    })));
    paper.set("20240101", 300);
    let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    let ran = extractor.run(&wanted(), false).await.unwrap();
    assert_eq!(ran.complete, 2, "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_wants_to_be_left_alone_is_and_that_is_told_once() {
    let world = World::in_memory();
    let paper = Arc::new(Paper::new(Box::new(|request, _| {
        let headers = vec![("Retry-After".to_owned(), "90".to_owned())];
        (10..14)
            .contains(&request)
            .then(|| Ok(Reply { status: 429, headers: headers.clone(), body: bytes::Bytes::new() }))
    })));
    paper.set("20240101", 300);
    let (extractor, mut heard) = extractor(&world, &paper, CancellationToken::new()).await;
    assert_eq!(extractor.run(&wanted(), false).await.unwrap().complete, 2);
    let mut told = 0;
    while let Ok(event) = heard.try_recv() {
        told += usize::from(matches!(event, Event::LeftAlone { .. }));
    }
    assert!((1..=4).contains(&told), "{told}");
}

/// A server that answers everything with `answer`, and how often it was asked.
async fn server(answer: String) -> (url::Url, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await.unwrap_or(0);
            let is_moved = String::from_utf8_lossy(&request[..read]).starts_with("GET /moved");
            let text = if is_moved { "HTTP/1.1 204 No Content\r\n\r\n" } else { &answer };
            let _gone = stream.write_all(text.as_bytes()).await;
        }
    });
    (base, asked)
}

/// The headers of a source hold its key.
#[tokio::test]
async fn a_redirect_is_followed_within_the_server_and_to_no_other() {
    let (elsewhere, asked) = server("HTTP/1.1 204 No Content\r\n\r\n".into()).await;
    let redirect = |to: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {to}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        )
    };
    let mut source = source();
    let (away, _) = server(redirect(elsewhere.as_str())).await;
    source.base_url = away.clone();
    let client = Client::new(&source, true).unwrap();
    assert_eq!(client.fetch(&away).await.unwrap().status, 302);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let (within, _) = server(redirect("/moved")).await;
    assert_eq!(client.fetch(&within).await.unwrap().status, 204);
}
