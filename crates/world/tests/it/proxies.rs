//! Proxies that forward, as reqwest uses them.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lavra_world::proxy::ProxyFaultKind;
use lavra_world::{ForwardProxy, ProxyFault};
use reqwest::{Client, Proxy};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ads::{Served, filters};

struct Behind {
    ads: Served,
    proxy: ForwardProxy,
    address: SocketAddr,
    _stop: DropGuard,
}

/// For what comes in the end, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: &str =
    "date_start=2025-01-15&date_end=2025-01-16&media_type=video&languages=pt,en&page_size=500";

impl Behind {
    async fn new() -> Self {
        let ads = Served::new().await;
        let proxy = ForwardProxy::for_user("maria", "p@ss:w/rd");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let (served, until) = (proxy.clone(), stop.clone());
        tokio::spawn(async move { served.serve(listener, until).await });
        Self { ads, proxy, address, _stop: stop.drop_guard() }
    }

    fn client(&self, scheme: &str, password: &str, patience: Duration) -> Client {
        let proxy = Proxy::all(format!("{scheme}://{}", self.address)).unwrap();
        let proxy = proxy.basic_auth("maria", password);
        Client::builder().proxy(proxy).timeout(patience).build().unwrap()
    }

    async fn ask(&self, scheme: &str) -> reqwest::Result<Value> {
        self.ask_within(scheme, PATIENCE).await
    }

    async fn ask_within(&self, scheme: &str, patience: Duration) -> reqwest::Result<Value> {
        let url = format!("{}/v1/ads?{PAGE}", self.ads.base);
        self.client(scheme, "p@ss:w/rd", patience).get(url).send().await?.json().await
    }

    fn fail(&self, kind: ProxyFaultKind) {
        self.proxy.set_fault(Some(ProxyFault::now(kind)));
    }

    /// A proxy closes its door, and opens it, a moment after it is told to.
    async fn until_it_connects(&self, wanted: Result<(), ErrorKind>) {
        let begun = Instant::now();
        loop {
            let connected = TcpStream::connect(self.address).await;
            let told = connected.map(drop).map_err(|error| error.kind());
            if told == wanted {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{told:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_page_comes_whole_through_http_and_socks5_and_is_metered() {
    let behind = Behind::new().await;
    let truth = behind.ads.library.truth(&filters());
    let on_page: Vec<Value> = truth.iter().take(500).cloned().collect();
    for scheme in ["http", "socks5", "socks5h"] {
        let before = behind.proxy.meter();
        let body = behind.ask(scheme).await.unwrap();
        assert_eq!(body["ads"].as_array(), Some(&on_page), "{scheme}");
        let after = behind.proxy.meter();
        assert_eq!(after.requests, before.requests + 1, "{scheme}");
        assert!(after.bytes_down - before.bytes_down > 100_000, "{scheme}: {after:?}");
        assert!(after.bytes_up > before.bytes_up);
    }
    let meter = behind.proxy.meter();
    assert_eq!((meter.http_requests, meter.socks, meter.denied), (1, 2, 0));
}

#[tokio::test]
async fn connect_makes_a_tunnel() {
    let behind = Behind::new().await;
    let mut stream = TcpStream::connect(behind.address).await.unwrap();
    let host = behind.ads.base.strip_prefix("http://").unwrap();
    let ask = format!(
        "CONNECT {host} HTTP/1.1\r\nhost: {host}\r\nproxy-authorization: Basic bWFyaWE6cEBzczp3L3Jk\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 1024];
    let length = stream.read(&mut buffer).await.unwrap();
    assert!(buffer[..length].starts_with(b"HTTP/1.1 200 "));
    let ask = format!("GET /v1 HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("\"library\":\"ads\""), "{answer}");
    assert_eq!(behind.proxy.meter().tunnels, 1);
}

#[tokio::test]
async fn wrong_credentials_are_refused() {
    let behind = Behind::new().await;
    let url = format!("{}/v1", behind.ads.base);
    let answer = behind.client("http", "wrong", PATIENCE).get(&url).send().await.unwrap();
    assert_eq!(answer.status(), 407);
    assert!(behind.client("socks5", "wrong", PATIENCE).get(&url).send().await.is_err());
    let open = Client::builder().proxy(Proxy::all(format!("socks5://{}", behind.address)).unwrap());
    assert!(open.build().unwrap().get(&url).send().await.is_err());
    assert_eq!(behind.proxy.meter().denied, 3);
}

#[tokio::test]
async fn each_fault_is_what_clients_see() {
    let behind = Behind::new().await;
    for scheme in ["http", "socks5h"] {
        behind.fail(ProxyFaultKind::Refuse);
        behind.until_it_connects(Err(ErrorKind::ConnectionRefused)).await;
        assert!(behind.ask(scheme).await.unwrap_err().is_connect());
        behind.fail(ProxyFaultKind::Reset);
        behind.until_it_connects(Ok(())).await;
        assert!(behind.ask(scheme).await.is_err());
        behind.fail(ProxyFaultKind::Deny);
        let denied = behind.proxy.meter().denied;
        assert!(behind.ask(scheme).await.is_err());
        assert_eq!(behind.proxy.meter().denied, denied + 1);
        behind.fail(ProxyFaultKind::Hang);
        let hung = behind.ask_within(scheme, Duration::from_secs(2)).await;
        assert!(hung.unwrap_err().is_timeout());
        behind.fail(ProxyFaultKind::Cut { bytes: 20_000 });
        assert!(behind.ask(scheme).await.is_err());
        behind.fail(ProxyFaultKind::Slow { millis: 30 });
        let begun = Instant::now();
        behind.ask(scheme).await.unwrap();
        assert!(begun.elapsed() > Duration::from_millis(90), "{scheme}");
        let after = behind.proxy.meter().connections + 1;
        behind.proxy.set_fault(Some(ProxyFault { kind: ProxyFaultKind::Deny, after }));
        behind.ask(scheme).await.unwrap();
        assert!(behind.ask(scheme).await.is_err());
        behind.proxy.set_fault(None);
        behind.ask(scheme).await.unwrap();
    }
}
