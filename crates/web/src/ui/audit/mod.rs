//! The audit: what happened, as the log has it, and the four reports over it.

mod failures;
mod log;
mod reports;
mod timeline;
mod when;

use axum::Router;
use axum::routing::get;

use super::texts::Audit;
use crate::app::Site;

pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/ui/audit", get(log::show))
        .route("/ui/audit/timeline", get(timeline::show))
        .route("/ui/audit/failures", get(failures::show))
        .route("/ui/audit/workers", get(reports::workers))
        .route("/ui/audit/proxies", get(reports::proxies))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Log,
    Timeline,
    Failures,
    Workers,
    Proxies,
}

impl Tab {
    /// Each with its address, its name, and whether it is this one.
    fn all(self, t: &Audit) -> [(&'static str, &'static str, bool); 5] {
        [
            (Self::Log, "/ui/audit", t.tab_log),
            (Self::Timeline, "/ui/audit/timeline", t.tab_timeline),
            (Self::Failures, "/ui/audit/failures", t.tab_failures),
            (Self::Workers, "/ui/audit/workers", t.tab_workers),
            (Self::Proxies, "/ui/audit/proxies", t.tab_proxies),
        ]
        .map(|(tab, path, name)| (path, name, tab == self))
    }
}
