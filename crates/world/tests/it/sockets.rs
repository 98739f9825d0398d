//! What only a real connection shows.

use std::error::Error as _;
use std::io::ErrorKind;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::support::{Served, contratos, get, world, world_with};

#[tokio::test]
async fn a_page_comes_in_chunks_without_a_reason_phrase() {
    let served = Served::new(world()).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = format!("GET {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", contratos(1));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("HTTP/1.1 200 \r\n"), "{}", &text[..40]);
    assert!(text.contains("transfer-encoding: chunked\r\n"));
    assert!(text.ends_with("\r\n0\r\n\r\n"));
    let whole = served.get(&contratos(1)).await.unwrap();
    assert_eq!(whole.version(), reqwest::Version::HTTP_11);
    assert_eq!(whole.headers()["content-type"], "application/json");
    let ours = get(&served.world, &contratos(1)).json();
    assert_eq!(whole.json::<serde_json::Value>().await.unwrap(), ours);
}

#[tokio::test]
async fn empties_arrive_as_they_should() {
    let served = Served::new(world()).await;
    let none =
        served.get("/v1/contratos?dataInicial=20300101&dataFinal=20300101&pagina=1").await.unwrap();
    assert_eq!(none.status(), 204);
    assert_eq!(none.headers()["content-type"], "application/json");
    assert_eq!(none.bytes().await.unwrap().len(), 0);
    let zero = served
        .get("/v1/pca/atualizacao?dataInicio=2026-06-01&dataFim=20260608&pagina=1")
        .await
        .unwrap();
    assert_eq!((zero.status().as_u16(), zero.content_length()), (200, Some(0)));
}

#[tokio::test]
async fn a_connection_is_reset_before_the_answer() {
    let served = Served::new(world_with(|faults| faults.reset = 1.0)).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = format!("GET {} HTTP/1.1\r\nhost: x\r\n\r\n", contratos(1));
    stream.write_all(request.as_bytes()).await.unwrap();
    let error = stream.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(served.get(&contratos(1)).await.is_err());
    assert_eq!(served.world.stats().in_flight, 0);
}

#[tokio::test]
async fn bodies_break_off_after_their_headers() {
    let served = Served::new(world()).await;
    for fault in ["cut_chunks", "cut_length"] {
        served.put_faults(&json!({ fault: 1.0 })).await;
        let mut response = served.get(&contratos(1)).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.content_length().is_some(), fault == "cut_length");
        let mut read = 0;
        let error = loop {
            match response.chunk().await {
                Ok(Some(piece)) => read += piece.len(),
                Ok(None) => panic!("{fault}: the body seems whole"),
                Err(error) => break error,
            }
        };
        assert!(read > 10_000, "{fault}: {read} bytes came before {:?}", error.source());
    }
    assert_eq!(served.world.stats().whole_pages, 0);
}

#[tokio::test]
async fn a_hang_ends_when_the_client_gives_up_or_its_time_is_over() {
    let served = Served::new(world()).await;
    served.put_faults(&json!({"hang": {"share": 1.0}})).await;
    let request = served.http.get(format!("{}{}", served.base, contratos(1)));
    let error = request.timeout(Duration::from_millis(200)).send().await.unwrap_err();
    assert!(error.is_timeout());
    let gone = async {
        while served.world.stats().in_flight > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.unwrap();
    served.put_faults(&json!({"hang": {"share": 1.0, "at_most_ms": 50}})).await;
    let error = served.get(&contratos(1)).await.unwrap_err();
    assert!(!error.is_timeout());
}

#[tokio::test]
async fn in_an_outage_connections_open_and_nothing_answers() {
    let served = Served::new(world()).await;
    served.put_faults(&json!({"outage": {"lasts_ms": 400}})).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = format!("GET {} HTTP/1.1\r\nhost: x\r\n\r\n", contratos(1));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    assert!(tokio::time::timeout(Duration::from_millis(100), read).await.is_err());
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.is_empty(), "the connection closes without an answer");
    assert_eq!(served.get(&contratos(1)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn latency_is_waited_for() {
    let served = Served::new(world_with(|faults| faults.latency.fixed_ms = 150)).await;
    let start = std::time::Instant::now();
    served.get(&contratos(1)).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(148));
}

#[tokio::test]
async fn a_huge_body_is_streamed() {
    let served = Served::new(world()).await;
    served.put_faults(&json!({"huge": {"share": 1.0, "bytes": 50_000_000}})).await;
    let mut response = served.get(&contratos(1)).await.unwrap();
    let mut read = 0;
    while let Some(piece) = response.chunk().await.unwrap() {
        read += piece.len();
    }
    assert_eq!(read, 50_000_000);
}

#[tokio::test]
async fn requests_at_once_are_counted_over_all_connections() {
    let served = Served::new(world()).await;
    served.put_faults(&json!({"latency": {"fixed_ms": 300}, "in_flight": {"limits": [4]}})).await;
    let asking = (0..10).map(|_| {
        let request = served.http.get(format!("{}{}", served.base, contratos(1)));
        tokio::spawn(async move { request.send().await.unwrap().status().as_u16() })
    });
    let mut statuses = Vec::new();
    for asked in asking.collect::<Vec<_>>() {
        statuses.push(asked.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 4, "{statuses:?}");
    assert!(served.world.stats().most_in_flight >= 5);
}

#[tokio::test]
async fn what_is_not_http_is_survived() {
    let served = Served::new(world()).await;
    for garbage in
        ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET /v1/contratos?%%%&&== HTTP/1.1\r\nhost: x\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(garbage.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let _some_error_or_none = stream.read_to_end(&mut Vec::new()).await;
    }
    assert_eq!(served.get(&contratos(1)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn only_loopback_is_served() {
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = world().serve(listener, CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
