//! An ad library, a proxy and a worker, each behind a socket of loopback; and the orchestrator's client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use lavra_fleet::api::{Http, JobReport, JobStatus, Reply, SessionStatus, WorkerApi};
use lavra_fleet::machine::worker::data_url;
use lavra_fleet::model;
use lavra_worker::{Config, Timing, Worker};
use lavra_world::fleet::{Filters, Format};
use lavra_world::proxy::ProxyFaultKind;
use lavra_world::{AdFaults, AdLibrary, AdsConfig, ForwardProxy, ProxyFault};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const KEY: &str = "marker-api-key-7b1e";
pub(crate) const PASSWORD: &str = "marker-p@ss:w/rd-93c2";
pub(crate) const USER: &str = "maria";

/// The world: a library and a proxy before it.
pub(crate) struct World {
    pub(crate) library: AdLibrary,
    pub(crate) proxy: ForwardProxy,
    pub(crate) base_url: String,
    pub(crate) proxy_at: SocketAddr,
    _stop: DropGuard,
}

impl World {
    pub(crate) async fn new() -> Self {
        let _once = rustls::crypto::ring::default_provider().install_default();
        let library = AdLibrary::new(AdsConfig { seed: 7, empty: 0.0, ..AdsConfig::default() });
        let proxy = ForwardProxy::for_user(USER, PASSWORD);
        let (ads_at, ads) = bound().await;
        let (proxy_at, forward) = bound().await;
        let stop = CancellationToken::new();
        let (served, until) = (library.clone(), stop.clone());
        tokio::spawn(async move { served.serve(ads, until).await });
        let (served, until) = (proxy.clone(), stop.clone());
        tokio::spawn(async move { served.serve(forward, until).await });
        let base_url = format!("http://{ads_at}/v1");
        Self { library, proxy, base_url, proxy_at, _stop: stop.drop_guard() }
    }

    pub(crate) fn fail(&self, kind: ProxyFaultKind) {
        self.proxy.set_fault(Some(ProxyFault::now(kind)));
    }

    pub(crate) fn faults(&self, change: impl FnOnce(&mut AdFaults)) {
        let mut faults = AdFaults::default();
        change(&mut faults);
        self.library.set_faults(faults).unwrap();
    }

    pub(crate) fn truth(&self, mission: &model::Mission) -> Vec<Value> {
        let format = match mission.media_type {
            model::MediaType::All => Format::All,
            model::MediaType::Video => Format::Video,
            model::MediaType::Image => Format::Image,
        };
        let (start, end) = (mission.date_start, mission.date_end);
        self.library.truth(&Filters { start, end, format, languages: mission.languages.clone() })
    }
}

async fn bound() -> (SocketAddr, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (listener.local_addr().unwrap(), listener)
}

pub(crate) fn quick() -> Timing {
    Timing {
        session: Duration::from_secs(5),
        attempts: 3,
        backoff: (Duration::from_millis(20), Duration::from_millis(100)),
        ..Timing::default()
    }
}

pub(crate) fn config(world: &World, data: &Path) -> Config {
    let mut source = lavra_worker::ads().unwrap();
    source.base_url = world.base_url.parse().unwrap();
    source.limits.timeout = Duration::from_secs(3);
    Config {
        data: data.to_owned(),
        api_key: Some(KEY.to_owned().into()),
        source,
        endpoint: None,
        storage: None,
        timing: quick(),
    }
}

/// A worker that is served until it goes out of scope, and the orchestrator's view of it.
pub(crate) struct Rig {
    pub(crate) worker: Worker,
    pub(crate) client: Client,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<lavra_worker::Result<()>>,
    data: PathBuf,
}

impl Rig {
    pub(crate) async fn new(world: &World, data: &Path) -> Self {
        Self::with(config(world, data)).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let data = config.data.clone();
        let worker = Worker::open(config).await.unwrap();
        let (at, listener) = bound().await;
        let stop = CancellationToken::new();
        let (served, until) = (worker.clone(), stop.clone());
        let serving = tokio::spawn(async move { served.serve(listener, until).await });
        Self { worker, client: Client::new(at), stop, serving, data }
    }

    /// Stopped as by SIGTERM; the directory is free afterwards.
    pub(crate) async fn stop(self) -> PathBuf {
        let Self { worker, stop, serving, data, .. } = self;
        stop.cancel();
        serving.await.unwrap().unwrap();
        drop(worker);
        data
    }
}

pub(crate) struct Client {
    pub(crate) base: String,
    http: Http,
    plain: reqwest::Client,
    worker: model::Worker,
}

impl Client {
    pub(crate) fn new(at: SocketAddr) -> Self {
        let _once = rustls::crypto::ring::default_provider().install_default();
        let base = format!("http://{at}");
        let worker = json!({
            "id": "wrk_1", "name": "one", "url": base, "storage_domain": base, "status": "idle",
            "session_count": 0, "active": true, "created_at": "2025-01-15T10:30:00Z",
            "updated_at": "2025-01-15T10:30:00Z", "session_accepted": false, "session_errors": 0,
            "unclosed": false,
        });
        Self {
            base,
            http: Http::new().unwrap(),
            plain: reqwest::Client::builder().no_proxy().build().unwrap(),
            worker: serde_json::from_value(worker).unwrap(),
        }
    }

    pub(crate) fn api(&self) -> WorkerApi<'_> {
        WorkerApi {
            transport: &self.http,
            worker: &self.worker,
            api_key: Some(KEY.to_owned().into()),
            timeout: Duration::from_secs(5),
        }
    }

    /// Opens a session behind the proxy of the world, as `kind` (`http`, `socks5`) of proxy.
    pub(crate) async fn open(&self, world: &World, kind: &str, key: &str) -> Reply {
        self.open_with(&proxy(world, kind), PASSWORD, key).await
    }

    pub(crate) async fn open_with(&self, proxy: &model::Proxy, password: &str, key: &str) -> Reply {
        let password = Some(password.to_owned().into());
        self.api().open(&model::SessionId(key.into()), proxy, password.as_ref()).await
    }

    pub(crate) async fn ready(&self, world: &World, kind: &str) {
        let key = format!("ses_{}", uuid());
        assert_eq!(self.open(world, kind, &key).await, Reply::Done);
        self.until_session(&SessionStatus::Ready).await;
    }

    pub(crate) async fn session(&self) -> SessionStatus {
        match self.api().session().await {
            Reply::Session(status) => status,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for a status, and says which others were seen on the way.
    pub(crate) async fn until_session(&self, wanted: &SessionStatus) -> Vec<SessionStatus> {
        let begun = Instant::now();
        let mut seen = Vec::new();
        loop {
            let status = self.session().await;
            if seen.last() != Some(&status) {
                seen.push(status.clone());
            }
            if status == *wanted {
                return seen;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{seen:?}, never {wanted:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn start(&self, mission: &model::Mission) -> String {
        match self.api().start(mission).await {
            Reply::Started { job_id } => job_id,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn job(&self, id: &str) -> JobReport {
        match self.api().job(id).await {
            Reply::Job { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn until_over(&self, id: &str) -> JobReport {
        let begun = Instant::now();
        loop {
            let job = self.job(id).await;
            let goes_on =
                matches!(job.status, JobStatus::Pending | JobStatus::Queued | JobStatus::Running);
            if !goes_on {
                return job;
            }
            assert!(begun.elapsed() < Duration::from_secs(25), "{job:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What a writer reads: the file at the URL that the orchestrator makes.
    pub(crate) async fn results(&self, id: &str) -> Value {
        let url = data_url(self.worker.storage_domain.as_deref().unwrap(), id);
        let answer = self.plain.get(url).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.json().await.unwrap()
    }

    pub(crate) async fn ads(&self, id: &str) -> Vec<Value> {
        self.results(id).await["ads"].as_array().unwrap().clone()
    }

    /// A request as anybody may send it, with the key.
    pub(crate) fn raw(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().unwrap();
        self.plain.request(method, format!("{}{path}", self.base)).header("x-api-key", KEY)
    }

    pub(crate) async fn raw_json(&self, method: &str, path: &str) -> (u16, Value) {
        let answer = self.raw(method, path).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }
}

fn uuid() -> String {
    let name = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    name.as_nanos().to_string()
}

pub(crate) fn proxy(world: &World, kind: &str) -> model::Proxy {
    let host = match kind {
        "http" => world.proxy_at.ip().to_string(),
        kind => format!("{kind}://{}", world.proxy_at.ip()),
    };
    let proxy = json!({
        "id": "prx_1", "host": host, "port": world.proxy_at.port(), "username": USER,
        "active": true, "fail_count": 0, "created_at": "2025-01-15T10:30:00Z",
    });
    serde_json::from_value(proxy).unwrap()
}

pub(crate) fn mission(
    id: &str,
    start: Date,
    days: i64,
    media: &str,
    languages: &[&str],
) -> model::Mission {
    let end = start + jiff::Span::new().days(days - 1);
    let mission = json!({
        "id": id, "date_start": start, "date_end": end, "media_type": media,
        "languages": languages, "status": "running", "retry_count": 0,
        "created_at": "2025-01-15T10:30:00Z", "attempts": 1,
    });
    serde_json::from_value(mission).unwrap()
}

/// The files below a directory, with what is in them.
pub(crate) fn files(place: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found
}
