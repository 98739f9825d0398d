//! A server of its own for each test.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use lavra_db::{Database, IDEMPOTENCY, Keyring, Secrets, migrate};
use lavra_fleet::Fleet;
use lavra_notify::Webhooks;
use lavra_tasks::store::ListFilter;
use lavra_tasks::{Backoff, MIGRATIONS, Settings, Tasks, keeper};
use lavra_web::App;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Client, Place};

/// The type that all tests may use.
pub(crate) const KIND: &str = "count";

pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) tasks: Tasks,
    pub(crate) database: Database,
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    keeping: Option<JoinHandle<()>>,
    place: Place,
    /// Ends the server with the test, however that ends.
    _ended_by: DropGuard,
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

pub(crate) fn settings() -> Settings {
    // Retries must not keep a test waiting.
    let short = Duration::from_millis(10);
    Settings { backoff: Backoff { first: short, longest: short }, ..Settings::default() }
}

/// The tasks of a database that was opened and migrated.
pub(crate) async fn open(place: &Place, settings: Settings) -> (Database, Tasks) {
    let database = place.open().await;
    let all = [
        MIGRATIONS,
        lavra_fleet::MIGRATIONS,
        lavra_notify::MIGRATIONS,
        lavra_web::MIGRATIONS,
        &[IDEMPOTENCY],
    ];
    migrate(&database, &all.concat()).await.unwrap();
    let tasks = Tasks::open(&database, settings).await.unwrap();
    tasks.declare(vec![KIND.into()]).await.unwrap();
    (database, tasks)
}

/// The interface of a database, with a key for secrets.
pub(crate) fn app(tasks: Tasks, database: Database) -> App {
    let _only_the_first_counts = rustls::crypto::ring::default_provider().install_default();
    let of = database.clone();
    let key = Keyring::generate();
    let source = move |_| {
        let keyring = Keyring::parse(&key.clone().into())?;
        Ok(Some(Secrets::new(of.clone(), keyring)))
    };
    let timing = lavra_fleet::settings::Timing::default();
    let fleet = Fleet::open(&database, Box::new(source), timing).unwrap();
    let (keys, timing) = (Arc::clone(&fleet.keys), lavra_notify::Timing::default());
    let webhooks = Webhooks::open(&database, keys, timing, true).unwrap();
    App::new(tasks, database, fleet, webhooks)
}

impl Server {
    pub(crate) async fn file() -> Self {
        Self::on(Place::file()).await
    }

    pub(crate) async fn on(place: Place) -> Self {
        Self::with(place, settings()).await
    }

    pub(crate) async fn with(place: Place, settings: Settings) -> Self {
        Self::at(place, settings, "127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn at(place: Place, settings: Settings, address: SocketAddr) -> Self {
        Self::with_app(place, settings, address, |app| app).await
    }

    /// With an app of another shape.
    pub(crate) async fn shaped(place: Place, shape: impl FnOnce(App) -> App) -> Self {
        Self::with_app(place, settings(), "127.0.0.1:0".parse().unwrap(), shape).await
    }

    async fn with_app(
        place: Place,
        settings: Settings,
        address: SocketAddr,
        shape: impl FnOnce(App) -> App,
    ) -> Self {
        let (database, tasks) = open(&place, settings).await;
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = lavra_web::router(shape(app(tasks.clone(), database.clone())));
        let stop = CancellationToken::new();
        let serving = tokio::spawn(lavra_web::serve(listener, router, stop.clone()));
        let client = Client::new(format!("http://{address}"));
        let ended_by = stop.clone().drop_guard();
        Self {
            client,
            tasks,
            database,
            address,
            stop,
            serving,
            keeping: None,
            place,
            _ended_by: ended_by,
        }
    }

    /// With the keeper, which takes over what silent workers held.
    pub(crate) fn kept(mut self) -> Self {
        let config = keeper::Config { every: Duration::from_millis(200), ..Default::default() };
        let keeper = keeper::keep(self.tasks.clone(), config, self.stop.clone());
        self.keeping = Some(tokio::spawn(keeper));
        self
    }

    /// Ends the server, closes the database, and leaves the place.
    pub(crate) async fn end(self) -> Place {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
        if let Some(keeping) = self.keeping {
            keeping.await.unwrap();
        }
        self.place
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Everything that can be written, as counts and names: equal before and after a refusal.
    pub(crate) async fn written(&self) -> String {
        let store = self.tasks.store();
        let tasks = store.list(ListFilter { limit: 100_000, ..Default::default() }).await.unwrap();
        let versions: i32 = tasks.iter().map(|task| task.version).sum();
        let mut events = 0;
        for task in &tasks {
            events += store.newest_events(task.id, 1000).await.unwrap().len();
        }
        let letters = store.dead_letters(None, 100_000).await.unwrap().len();
        let (schedules, types) =
            (store.schedules().await.unwrap().len(), store.declared().await.unwrap());
        format!(
            "{} tasks, versions {versions}, {events} events, {letters} dead letters, \
             {schedules} schedules, types {types:?}",
            tasks.len()
        )
    }
}
