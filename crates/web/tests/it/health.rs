//! GET /healthz and GET /readyz.

use std::time::{Duration, Instant};

use lavra_tasks::{Broker, BrokerConfig, Settings};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::place::OwnDatabase;
use crate::support::server::{KIND, settings};
use crate::support::{Place, Server, on_each_engine, until};

on_each_engine!(without_its_broker_it_is_degraded_and_makes_tasks);

#[tokio::test]
async fn a_server_with_its_database_is_ready() {
    let server = Server::file().await;
    assert_eq!(server.get("/healthz").await.expect(200), json!({"status": "alive"}));
    let ready = json!({"status": "ready", "reasons": [], "database": "duckdb", "outbox": 0});
    assert_eq!(server.get("/readyz").await.expect(200), ready);
}

async fn without_its_broker_it_is_degraded_and_makes_tasks(place: Place) {
    let broker = Broker::new(BrokerConfig::new("amqp://lavra:hunter2@127.0.0.1:1/%2f"));
    let settings = Settings { broker: Some(broker.clone()), ..settings() };
    let server = Server::with(place, settings).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (tasks, stop) = (server.tasks.clone(), stop.clone());
        async move { broker.run(tasks, stop).await }
    });
    let id = server.create(KIND, &json!({})).await;
    let ready = until("the broker's trouble", Duration::from_secs(20), || async {
        let ready = server.get("/readyz").await.expect(200);
        ready["broker"]["trouble"].is_string().then_some(ready)
    })
    .await;
    assert_eq!((&ready["status"], &ready["outbox"]), (&json!("degraded"), &json!(1)));
    assert_eq!(ready["broker"]["connected"], false);
    assert!(ready["reasons"][0].as_str().unwrap().starts_with("RabbitMQ: "), "{ready}");
    assert!(!ready.to_string().contains("hunter2"), "a password got out: {ready}");
    assert_eq!(server.task(&id).await["status"], "PENDING");
    stop.cancel();
    running.await.unwrap();
}

/// A way to the test server that can be blocked: then it takes everything and answers nothing.
async fn blockable_way(to: String) -> (u16, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let blocked = CancellationToken::new();
    let look = blocked.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (to, look) = (to.clone(), look.clone());
            tokio::spawn(async move {
                if look.is_cancelled() {
                    std::future::pending::<()>().await;
                }
                let mut far = TcpStream::connect(to).await.unwrap();
                tokio::select! {
                    _ = copy_bidirectional(&mut near, &mut far) => {}
                    () = look.cancelled() => std::future::pending::<()>().await,
                }
            });
        }
    });
    (port, blocked)
}

#[tokio::test]
async fn a_database_that_is_silent_is_told_within_two_seconds() {
    let mut own = OwnDatabase::create().await;
    let to = format!("{}:{}", own.url.host_str().unwrap(), own.url.port().unwrap_or(5432));
    let (port, blocked) = blockable_way(to).await;
    own.url.set_host(Some("127.0.0.1")).unwrap();
    own.url.set_port(Some(port)).unwrap();
    let server = Server::on(Place::Server(own)).await;
    assert_eq!(server.get("/readyz").await.expect(200)["database"], "postgres");
    blocked.cancel();
    let start = Instant::now();
    let reply = server.get("/readyz").await;
    assert!((1900..3000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    reply.problem(503, "database_unreachable");
    assert_eq!(reply.header("retry-after"), Some("1"));
    server.get("/healthz").await.expect(200);
    let metrics = server.get("/metrics").await;
    assert!(metrics.text.contains("lavra_database_up 0"), "{}", metrics.text);
}

#[tokio::test]
async fn a_database_that_is_gone_is_a_problem_without_its_inside() {
    let place = Place::server().await;
    let server = Server::on(place).await;
    server.tasks.store().schedules().await.unwrap();
    // The table goes, under the server's feet.
    let Place::Server(own) = server.place() else { unreachable!() };
    own.execute("DROP TABLE kodus_workflow.task_inputs CASCADE").await;
    let reply = server.post("/tasks", &json!({"type": KIND, "payload": {"secret": 1}})).await;
    let problem: Value = reply.problem(500, "database_error");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("could not create tasks: "), "{detail}");
    assert!(!detail.contains("INSERT") && !detail.contains("secret"), "{detail}");
}
