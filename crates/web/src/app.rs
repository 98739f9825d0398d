//! What the interface is made of, and what its handlers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRef;
use lavra_db::Database;
use lavra_fleet::Fleet;
use lavra_notify::Webhooks;
use lavra_tasks::Tasks;

use crate::feed::Feed;
use crate::workers::Roster;

/// What the interface shows.
#[derive(Clone, Debug)]
pub struct App {
    pub tasks: Tasks,
    pub database: Database,
    pub fleet: Fleet,
    pub webhooks: Webhooks,
    /// Names under which this server may be addressed, beside those of the loopback.
    pub hosts: Vec<String>,
    /// What the types that come with the program do, in a sentence each.
    pub types: BTreeMap<String, String>,
}

impl App {
    pub fn new(tasks: Tasks, database: Database, fleet: Fleet, webhooks: Webhooks) -> Self {
        Self { tasks, database, fleet, webhooks, hosts: Vec::new(), types: BTreeMap::new() }
    }
}

/// The app with what exists once per router.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) app: Arc<App>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) roster: Arc<Roster>,
}

impl Site {
    pub(crate) fn new(app: App) -> Self {
        Self {
            feed: Arc::new(Feed::new(app.tasks.clone())),
            roster: Arc::default(),
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
