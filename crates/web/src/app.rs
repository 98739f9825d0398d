//! What the interface is made of, and what its handlers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRef;
use axum::http::Uri;
use lavra_db::Database;
use lavra_fleet::Fleet;
use lavra_notify::Webhooks;
use lavra_tasks::Tasks;

use crate::access::Access;
use crate::feed::Feed;
use crate::ui::Live;
use crate::workers::Roster;

/// What the interface shows.
#[derive(Clone, Debug)]
pub struct App {
    pub tasks: Tasks,
    pub database: Database,
    pub fleet: Fleet,
    pub webhooks: Webhooks,
    /// Names under which this server may be addressed, beside those of the loopback and the one of
    /// `public_url`.
    pub hosts: Vec<String>,
    /// Whether also callers on this machine need a key.
    pub require_key: bool,
    /// Where people reach this server, if something stands before it; by https, cookies stay there.
    pub public_url: Option<Uri>,
    /// What the types that come with the program do, in a sentence each.
    pub types: BTreeMap<String, String>,
}

impl App {
    pub fn new(tasks: Tasks, database: Database, fleet: Fleet, webhooks: Webhooks) -> Self {
        Self {
            tasks,
            database,
            fleet,
            webhooks,
            hosts: Vec::new(),
            require_key: false,
            public_url: None,
            types: BTreeMap::new(),
        }
    }
}

/// The app with what exists once per router.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) app: Arc<App>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) live: Arc<Live>,
    pub(crate) access: Arc<Access>,
}

impl Site {
    pub(crate) fn new(mut app: App) -> Self {
        let public = app.public_url.as_ref().and_then(Uri::host).map(str::to_owned);
        app.hosts.extend(public);
        Self {
            access: Arc::new(Access::new(&app)),
            feed: Arc::new(Feed::new(app.tasks.clone())),
            roster: Arc::default(),
            live: Arc::new(Live::new(app.fleet.clone(), app.tasks.clone())),
            app: Arc::new(app),
        }
    }
}

impl FromRef<Site> for Tasks {
    fn from_ref(site: &Site) -> Self {
        site.app.tasks.clone()
    }
}

impl FromRef<Site> for Fleet {
    fn from_ref(site: &Site) -> Self {
        site.app.fleet.clone()
    }
}

impl FromRef<Site> for Webhooks {
    fn from_ref(site: &Site) -> Self {
        site.app.webhooks.clone()
    }
}

impl FromRef<Site> for Arc<App> {
    fn from_ref(site: &Site) -> Self {
        Arc::clone(&site.app)
    }
}

impl FromRef<Site> for Arc<Feed> {
    fn from_ref(site: &Site) -> Self {
        Arc::clone(&site.feed)
    }
}

impl FromRef<Site> for Arc<Roster> {
    fn from_ref(site: &Site) -> Self {
        Arc::clone(&site.roster)
    }
}

impl FromRef<Site> for Arc<Live> {
    fn from_ref(site: &Site) -> Self {
        Arc::clone(&site.live)
    }
}

impl FromRef<Site> for Arc<Access> {
    fn from_ref(site: &Site) -> Self {
        Arc::clone(&site.access)
    }
}
