//! PostgreSQL that goes away, comes late, refuses or hangs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lavra_db::tokio_postgres::types::Type;
use lavra_db::{Error, Pg, Result, Schema};
use rustls::pki_types::PrivateKeyDer;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::support::place::{PATIENCE, Server};
use crate::support::until;

const PASSWORD: &str = "hunter2";

async fn connect(url: &str, patience: Duration) -> Result<Pg> {
    Pg::connect(&url.to_owned().into(), Schema::default(), patience).await
}

/// An address where nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

fn assert_names(error: &Error, address: &str, reason: &str) {
    let text = error.to_string();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(text.contains(address) && text.contains(reason), "{text}");
    assert!(!text.contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD), "{text}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_reason_and_without_the_password() {
    let address = nobody().await;
    let started = Instant::now();
    let url = format!("postgres://someone:{PASSWORD}@{address}/some");
    let error = connect(&url, Duration::from_millis(400)).await.unwrap_err();
    assert_names(&error, &address, "Connection refused");
    assert!(error.is_transient());
    assert!(started.elapsed() >= Duration::from_millis(200), "it was not tried again");
}

#[tokio::test]
async fn a_server_that_comes_late_is_waited_for() {
    let server = Server::direct().await;
    let real: url::Url = server.url().expose_secret().parse().unwrap();
    let address = nobody().await;
    let mut late = real.clone();
    late.set_port(address.rsplit_once(':').unwrap().1.parse().ok()).unwrap();
    late.set_host(Some("127.0.0.1")).unwrap();
    let forwarder = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        let listener = TcpListener::bind(address).await.unwrap();
        let host = format!("{}:{}", real.host_str().unwrap(), real.port().unwrap());
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(&host).await.unwrap();
            tokio::spawn(
                async move { tokio::io::copy_bidirectional(&mut client, &mut server).await },
            );
        }
    });
    connect(late.as_str(), PATIENCE).await.unwrap();
    forwarder.abort();
}

/// A server that asks for a password and refuses it, in Portuguese.
async fn refuses_every_password() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut received = [0; 1024];
            // Startup; «password, please»; the password; «no».
            let _startup = client.read(&mut received).await;
            let ask = [b'R', 0, 0, 0, 8, 0, 0, 0, 3];
            let _asked = client.write_all(&ask).await;
            let _password = client.read(&mut received).await;
            let fields = "SFATAL\0C28P01\0Mautenticação falhou para o usuário\0\0".as_bytes();
            let length = (fields.len() as u32 + 4).to_be_bytes();
            let _refused = client.write_all(&[b"E", &length[..], fields].concat()).await;
        }
    });
    address
}

#[tokio::test]
async fn a_wrong_password_is_not_tried_again_in_whatever_language() {
    let address = refuses_every_password().await;
    let started = Instant::now();
    let url = format!("postgres://someone:{PASSWORD}@{address}/some");
    let error = connect(&url, Duration::from_secs(30)).await.unwrap_err();
    assert_names(&error, &address, "autenticação falhou");
    assert!(error.to_string().contains("CREATE ROLE someone LOGIN"), "{error}");
    assert!(!error.is_transient());
    assert!(started.elapsed() < Duration::from_secs(10), "it was tried again");
}

/// What a server on another machine says to the wish for TLS; then it shows a certificate, if it said yes.
async fn answers_the_wish_for_tls(answer: u8) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let _wish = client.read_exact(&mut [0; 8]).await;
            let _answered = client.write_all(&[answer]).await;
            let _refused = acceptor.accept(client).await;
        }
    });
    address
}

#[tokio::test]
async fn what_is_wrong_with_tls_is_said_at_once_with_what_to_do() {
    for (answer, reason, advice) in [
        (b'S', "invalid peer certificate", "SSL_CERT_FILE"),
        (b'N', "does not support TLS", "?sslmode=disable"),
    ] {
        let address = answers_the_wish_for_tls(answer).await;
        let started = Instant::now();
        let url = format!("postgres://someone:{PASSWORD}@{address}/some?sslmode=require");
        let error = connect(&url, Duration::from_secs(30)).await.unwrap_err();
        assert_names(&error, &address, reason);
        assert!(error.to_string().contains(advice), "{error}");
        assert!(!error.is_transient());
        assert!(started.elapsed() < Duration::from_secs(10), "it was tried again");
    }
}

async fn an_unknown_database_is_not_waited_for(server: Server) {
    let url: SecretString = server.url_of("no_such_database");
    let started = Instant::now();
    let error = connect(url.expose_secret(), Duration::from_secs(30)).await.unwrap_err();
    assert_names(&error, "127.0.0.1:", "no_such_database");
    assert!(error.to_string().contains("CREATE DATABASE no_such_database"), "{error}");
    assert!(!error.is_transient());
    assert!(started.elapsed() < Duration::from_secs(10), "it was tried again");
}

#[tokio::test]
async fn an_unknown_database_is_told_at_once() {
    an_unknown_database_is_not_waited_for(Server::direct().await).await;
}

#[tokio::test]
async fn an_unknown_database_behind_a_pooler_is_told_at_once() {
    an_unknown_database_is_not_waited_for(Server::pooled().await).await;
}

const SLEEPS: &str = "SELECT pid FROM pg_stat_activity
                      WHERE datname = current_database() AND state = 'active'
                      AND query LIKE 'SELECT pg_sleep%'";

async fn sleeping(pg: &Pg) -> Option<i32> {
    let rows = pg.query("look for a sleeper", SLEEPS, &[]).await.unwrap();
    rows.first().map(|row| row.get(0))
}

async fn a_cut_connection_fails_one_call(server: Server) {
    let (pg, other) = (server.connect().await, server.connect().await);
    let cut = async {
        let pid = until("asleep", PATIENCE, || sleeping(&other)).await;
        let params = [(&pid as _, Type::INT4)];
        other.query("cut", "SELECT pg_terminate_backend($1)", &params).await.unwrap();
    };
    let call = pg.query("sleep", "SELECT pg_sleep(20)", &[]);
    let (answer, ()) = tokio::join!(call, cut);
    let error = answer.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(error.to_string().starts_with("could not sleep: "), "{error}");
    let rows = pg.query("go on", "SELECT 1", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, i32>(0), 1);
}

#[tokio::test]
async fn a_connection_that_is_cut_under_a_call_fails_that_call_only() {
    a_cut_connection_fails_one_call(Server::direct().await).await;
}

#[tokio::test]
async fn a_connection_that_is_cut_behind_a_pooler_fails_that_call_only() {
    a_cut_connection_fails_one_call(Server::pooled().await).await;
}

#[tokio::test]
async fn when_every_connection_was_cut_the_next_calls_are_served() {
    let server = Server::direct().await;
    let pg = server.connect().await;
    let calls = (0..10).map(|_| pg.query("open a connection", "SELECT pg_sleep(0.1)", &[]));
    assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_ok));
    server
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    let answer = async || pg.query("go on", "SELECT 1", &[]).await.ok();
    until("served again", PATIENCE, answer).await;
}

async fn a_statement_over_its_limit_is_given_up(pg: &Pg) {
    let limited = pg.clone().with_limit(Duration::from_millis(300));
    let error = limited.query("sleep", "SELECT pg_sleep(20)", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("could not sleep: PostgreSQL at "), "{text}");
    assert!(text.ends_with("did not answer within 300ms"), "{text}");
    assert!(error.is_transient());
    // The connection is gone: nobody waits for the sleeper.
    let started = Instant::now();
    let rows = pg.query("go on", "SELECT 1", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, i32>(0), 1);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_statement_over_its_time_limit_is_given_up_and_stopped() {
    let server = Server::direct().await;
    let pg = server.connect().await;
    a_statement_over_its_limit_is_given_up(&pg).await;
    let stopped = async || sleeping(&pg).await.is_none().then_some(());
    until("stopped on the server", PATIENCE, stopped).await;
}

#[tokio::test]
async fn a_statement_over_its_time_limit_behind_a_pooler_is_given_up() {
    let server = Server::pooled().await;
    a_statement_over_its_limit_is_given_up(&server.connect().await).await;
}

#[tokio::test]
async fn a_call_whose_caller_went_away_is_stopped() {
    let server = Server::direct().await;
    let (pg, other) = (server.connect().await, server.connect().await);
    let caller = pg.clone();
    let call =
        tokio::spawn(
            async move { caller.query("sleep", "SELECT pg_sleep(20)", &[]).await.map(drop) },
        );
    until("asleep", PATIENCE, || sleeping(&other)).await;
    call.abort();
    let stopped = async || sleeping(&other).await.is_none().then_some(());
    until("stopped on the server", PATIENCE, stopped).await;
    pg.query("go on", "SELECT 1", &[]).await.unwrap();
}

#[tokio::test]
async fn an_error_of_ours_is_not_worth_trying_again() {
    let server = Server::direct().await;
    let pg = server.connect().await;
    let error = pg.query("ask nonsense", "SELECT nothing FROM nowhere", &[]).await.unwrap_err();
    assert!(!error.is_transient());
    assert!(error.to_string().contains("nowhere"), "{error}");
    let rows = pg.query("read", "SELECT 'text'", &[]).await.unwrap();
    let source = rows[0].try_get::<_, i32>(0).unwrap_err();
    let error = Error::Postgres { operation: "read", source };
    assert!(!error.is_transient(), "a value of another type will stay one");
}

#[tokio::test]
async fn a_transaction_is_written_at_its_end_and_otherwise_not_at_all() {
    for server in [Server::direct().await, Server::pooled().await] {
        let pg = server.connect().await;
        pg.query("make a table", "CREATE TABLE public.t (n INT4 PRIMARY KEY)", &[]).await.unwrap();
        let add = "INSERT INTO public.t VALUES ($1) RETURNING n";
        let (one, two) = ([(&1_i32 as _, Type::INT4)], [(&2_i32 as _, Type::INT4)]);
        let count = async || -> i64 {
            let sql = "SELECT count(*) FROM public.t";
            pg.query("count", sql, &[]).await.unwrap()[0].get(0)
        };
        drop(pg.transaction("nothing").await.unwrap());
        let mut left = pg.transaction("leave in the middle").await.unwrap();
        left.query(add, &one).await.unwrap();
        drop(left);
        let mut back = pg.transaction("roll back").await.unwrap();
        back.query(add, &one).await.unwrap();
        back.rollback().await.unwrap();
        let mut failed = pg.transaction("fail at the end").await.unwrap();
        failed.query(add, &one).await.unwrap();
        failed.finish(add, &one).await.unwrap_err();
        assert_eq!(count().await, 0);

        let mut whole = pg.transaction("write both").await.unwrap();
        whole.query(add, &one).await.unwrap();
        let rows = whole.finish(add, &two).await.unwrap();
        assert_eq!(rows[0].get::<_, i32>(0), 2);
        assert_eq!(count().await, 2);
        let at_once = pg.transaction("write alone").await.unwrap();
        at_once.finish("DELETE FROM public.t", &[]).await.unwrap();
        assert_eq!(count().await, 0);
    }
}
