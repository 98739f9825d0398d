//! The proxies: who uses which, which failed, and how the last sessions behind each went.

use std::collections::HashMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::model::{EventKind, LogEntry, Proxy, Worker};
use lavra_fleet::store::LogFilter;
use serde_json::Value;

use super::shown::{ListQuery, TestView, paged, tiles};
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::chart;
use crate::ui::overview::Tile;
use crate::ui::page::{Said, Section, Shell, show};
use crate::ui::texts::{Common, Things};
use crate::ui::visitor::Visitor;

/// So many entries of the log are looked at for all proxies together.
const LOOKED_AT: usize = 1000;
const RESULTS: usize = 20;

#[derive(Template)]
#[template(path = "proxies.html")]
struct ListPage {
    shell: Shell,
    t: &'static Things,
    total: String,
    tiles: Vec<Tile>,
    is_narrowed: bool,
    query_text: String,
    rows: Vec<Row>,
    is_first: bool,
    next: Option<String>,
    /// All that are active are in use.
    is_exhausted: bool,
    most_failures: i32,
}

#[derive(Debug)]
struct Row {
    id: String,
    name: String,
    server: String,
    user: Option<String>,
    active: bool,
    slug: &'static str,
    state: &'static str,
    worker: Option<(String, String)>,
    failures: i32,
    /// Made here, from numbers.
    strip: Option<String>,
    used: Option<(String, String)>,
    test: Option<TestView>,
}

/// How a proxy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    InUse,
    Free,
    /// Too often, and nobody has said that it may be used again.
    FailedOut,
    Inactive,
}

impl Standing {
    const ALL: [Self; 4] = [Self::InUse, Self::Free, Self::FailedOut, Self::Inactive];

    fn of(proxy: &Proxy, most_failures: i32) -> Self {
        if proxy.in_use_by_worker_id.is_some() {
            Self::InUse
        } else if proxy.active {
            Self::Free
        } else if proxy.fail_count >= most_failures {
            Self::FailedOut
        } else {
            Self::Inactive
        }
    }

    fn slug(self) -> &'static str {
        match self {
            Self::InUse => "busy",
            Self::Free => "ok",
            Self::FailedOut => "failed",
            Self::Inactive => "inactive",
        }
    }

    fn name(self, t: &Things) -> &'static str {
        match self {
            Self::InUse => t.in_use,
            Self::Free => t.free,
            Self::FailedOut => t.failed_out,
            Self::Inactive => t.inactive,
        }
    }

    fn plural(self, t: &Things) -> &'static str {
        match self {
            Self::InUse => t.many_in_use,
            Self::Free => t.many_free,
            Self::FailedOut => t.many_failed_out,
            Self::Inactive => t.inactive_many,
        }
    }
}

pub(super) async fn list(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(query): Asked<ListQuery>,
) -> Result<Response, Problem> {
    let language = visitor.language;
    let t = Things::of(language);
    let shell = Shell::new(visitor, Section::Proxies, Common::of(language).nav_proxies);
    let shell = shell.follows("fleet missions").saying(said.text());
    let sessions = LogFilter {
        events: vec![EventKind::SessionReady, EventKind::SessionFailed],
        limit: LOOKED_AT,
        ..LogFilter::default()
    };
    let store = &fleet.store;
    let (proxies, workers, log) =
        tokio::try_join!(store.proxies(), store.workers(), store.log(&sessions))?;
    let most_failures = fleet.timing.max_proxy_failures;
    let standing = |proxy: &Proxy| Standing::of(proxy, most_failures);
    let states = Standing::ALL.map(|it| (it.slug(), it.plural(t)));
    let state = query.state.as_deref();
    let here = Standing::ALL.into_iter().find(|it| Some(it.slug()) == state);
    let count = |slug: &str| proxies.iter().filter(|it| standing(it).slug() == slug).count();
    let tiles = tiles("/ui/proxies", &states, here.map(Standing::slug), count, &shell);
    let is_exhausted = proxies.iter().any(|it| it.active) && count(Standing::Free.slug()) == 0;
    let results = results(&log);
    let total = shell.f.number(proxies.len() as i64);
    let mut shown = proxies;
    shown.retain(|proxy| here.is_none_or(|here| standing(proxy) == here));
    let (shown, next) = paged(shown, query.after.as_deref(), |proxy| &proxy.id.0);
    let row = |proxy: Proxy| {
        let strip = results.get(proxy.label()).map(|results| strip(results, t));
        Row::new(proxy, most_failures, &workers, strip, t, &shell)
    };
    let page = ListPage {
        total,
        tiles,
        is_narrowed: here.is_some(),
        query_text: here.map(|here| format!("state={}", here.slug())).unwrap_or_default(),
        rows: shown.into_iter().map(row).collect(),
        is_first: query.after.is_none(),
        next,
        is_exhausted,
        most_failures,
        shell,
        t,
    };
    Ok(show(&page))
}

/// How the last sessions behind each proxy went, the oldest first. The log comes newest first.
fn results(log: &[LogEntry]) -> HashMap<&str, Vec<bool>> {
    let mut all: HashMap<&str, Vec<bool>> = HashMap::new();
    for entry in log {
        let Some(name) = entry.details.get("proxy_name").and_then(Value::as_str) else { continue };
        let results = all.entry(name).or_default();
        if results.len() < RESULTS {
            results.push(entry.event == EventKind::SessionReady);
        }
    }
    for results in all.values_mut() {
        results.reverse();
    }
    all
}

fn strip(results: &[bool], t: &Things) -> String {
    let good = results.iter().filter(|is_good| **is_good).count();
    let title = format!("{}: {good} {} {}", t.last_results, t.good_of, results.len());
    chart::strip(results, RESULTS, &title)
}

impl Row {
    fn new(
        proxy: Proxy,
        most_failures: i32,
        workers: &[Worker],
        strip: Option<String>,
        t: &Things,
        shell: &Shell,
    ) -> Self {
        let standing = Standing::of(&proxy, most_failures);
        let worker = proxy.in_use_by_worker_id.as_ref().map(|id| {
            let found = workers.iter().find(|worker| worker.id == *id);
            (id.0.clone(), found.map_or_else(|| id.0.clone(), |worker| worker.name.clone()))
        });
        Self {
            name: proxy.label().to_owned(),
            server: proxy.server(),
            slug: standing.slug(),
            state: standing.name(t),
            worker,
            strip,
            used: proxy.last_used_at.map(|at| (shell.f.iso(at), shell.f.ago(at))),
            test: TestView::new(proxy.last_test_at, proxy.last_test_ok, t, shell),
            failures: proxy.fail_count,
            id: proxy.id.0,
            user: proxy.username.filter(|user| !user.is_empty()),
            active: proxy.active,
        }
    }
}

#[cfg(test)]
mod tests {
    use lavra_fleet::model::LogId;
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn the_last_results_of_each_proxy_come_oldest_first() {
        let entry = |proxy: &str, event| LogEntry {
            id: LogId("log_1".into()),
            mission_id: None,
            event,
            details: Map::from_iter([("proxy_name".to_owned(), json!(proxy))]),
            timestamp: jiff::Timestamp::UNIX_EPOCH,
            session_id: None,
        };
        let (good, bad) = (EventKind::SessionReady, EventKind::SessionFailed);
        let mut log = vec![entry("a", bad), entry("b", good), entry("a", good)];
        log.extend((0..30).map(|_| entry("c", bad)));
        let found = results(&log);
        assert_eq!((&found["a"][..], &found["b"][..]), (&[true, false][..], &[true][..]));
        assert_eq!(found["c"].len(), RESULTS);
    }
}
