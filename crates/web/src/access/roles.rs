//! Which role each route needs: every route has one line here, and none is open without one.
//!
//! The same table is in `docs/security.md`; tests hold the routes that are served, the table there
//! and what is answered against this one.

use axum::http::Method;

use super::Role;

/// What a line asks of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: anyone may call.
    Open,
    /// To be known, whatever the role.
    Known,
    /// A role that includes this one.
    Least(Role),
}

use Need::{Known, Least, Open};
use Role::{Admin, Operator, Viewer, Writer};

/// The interface: method, documented path, need.
pub const ROUTES: &[(&str, &str, Need)] = &[
    ("GET", "/healthz", Open),
    ("GET", "/readyz", Open),
    ("GET", "/metrics", Least(Viewer)),
    ("GET", "/openapi.json", Least(Viewer)),
    ("GET", "/docs/errors", Least(Viewer)),
    ("POST", "/sql", Least(Admin)),
    ("GET", "/keys", Least(Admin)),
    ("POST", "/keys", Least(Admin)),
    ("DELETE", "/keys/{id}", Least(Admin)),
    ("GET", "/webhooks", Least(Admin)),
    ("POST", "/webhooks", Least(Admin)),
    ("GET", "/webhooks/{id}", Least(Admin)),
    ("PUT", "/webhooks/{id}", Least(Admin)),
    ("DELETE", "/webhooks/{id}", Least(Admin)),
    ("POST", "/webhooks/{id}:test", Least(Admin)),
    ("GET", "/tasks", Least(Viewer)),
    ("POST", "/tasks", Least(Operator)),
    ("POST", "/tasks:batch", Least(Operator)),
    ("GET", "/tasks/{id}", Least(Viewer)),
    // A payload may carry a credential for someone else.
    ("GET", "/tasks/{id}/input", Least(Operator)),
    ("GET", "/tasks/{id}/events", Least(Viewer)),
    ("GET", "/tasks/{id}/result", Least(Viewer)),
    ("GET", "/tasks/{id}/stream", Least(Viewer)),
    ("POST", "/tasks/{id}:cancel", Least(Operator)),
    ("POST", "/tasks/{id}:retry", Least(Operator)),
    ("GET", "/events/stream", Least(Viewer)),
    ("GET", "/types", Least(Viewer)),
    ("POST", "/tasks:claim", Least(Writer)),
    ("POST", "/tasks/{id}:progress", Least(Writer)),
    ("POST", "/tasks/{id}:complete", Least(Writer)),
    ("POST", "/tasks/{id}:fail", Least(Writer)),
    ("POST", "/tasks/{id}:release", Least(Writer)),
    ("POST", "/workers/{id}:heartbeat", Least(Writer)),
    ("POST", "/workers/{id}:retire", Least(Writer)),
    ("GET", "/dead-letters", Least(Viewer)),
    ("POST", "/dead-letters:redrive", Least(Operator)),
    ("POST", "/dead-letters/{id}:redrive", Least(Operator)),
    ("DELETE", "/dead-letters/{id}", Least(Operator)),
    // With the payloads of the tasks that it makes.
    ("GET", "/schedules", Least(Operator)),
    ("PUT", "/schedules/{name}", Least(Operator)),
    ("DELETE", "/schedules/{name}", Least(Operator)),
    ("GET", "/sources", Least(Viewer)),
    ("GET", "/extractions/{source}", Least(Viewer)),
    ("GET", "/extractions/{source}/grid", Least(Viewer)),
    ("GET", "/extractions/{source}/tasks/{task_id}", Least(Viewer)),
    ("GET", "/extractions/{source}/tasks/{task_id}/pages", Least(Viewer)),
    ("POST", "/extractions/{source}:plan", Least(Operator)),
    ("POST", "/extractions/{source}:run", Least(Operator)),
    ("POST", "/extractions/{source}:retry", Least(Operator)),
    ("POST", "/extractions/{source}:audit", Least(Operator)),
    ("POST", "/extractions/{source}:export", Least(Operator)),
    ("GET", "/missions", Least(Viewer)),
    ("POST", "/missions", Least(Operator)),
    ("POST", "/missions:import", Least(Operator)),
    ("POST", "/missions:queue", Least(Operator)),
    ("POST", "/missions:cancel", Least(Operator)),
    ("POST", "/missions:retry", Least(Operator)),
    ("GET", "/missions/{id}", Least(Viewer)),
    ("GET", "/missions/{id}/log", Least(Viewer)),
    ("POST", "/missions/{id}:queue", Least(Operator)),
    ("POST", "/missions/{id}:cancel", Least(Operator)),
    ("POST", "/missions/{id}:retry", Least(Operator)),
    ("POST", "/missions/{id}:copy", Least(Operator)),
    ("GET", "/fleet", Least(Viewer)),
    ("GET", "/fleet/log", Least(Viewer)),
    ("GET", "/fleet/reports/failures", Least(Viewer)),
    ("GET", "/fleet/reports/workers", Least(Viewer)),
    ("GET", "/fleet/reports/proxies", Least(Viewer)),
    ("POST", "/fleet/start", Least(Operator)),
    ("POST", "/fleet/drain", Least(Operator)),
    ("POST", "/fleet/stop", Least(Operator)),
    ("GET", "/fleet/settings", Least(Viewer)),
    ("PUT", "/fleet/settings", Least(Admin)),
    ("GET", "/fleet/workers", Least(Viewer)),
    ("POST", "/fleet/workers", Least(Admin)),
    ("GET", "/fleet/workers/{id}", Least(Viewer)),
    ("PUT", "/fleet/workers/{id}", Least(Admin)),
    ("DELETE", "/fleet/workers/{id}", Least(Admin)),
    ("POST", "/fleet/workers/{id}:activate", Least(Admin)),
    ("POST", "/fleet/workers/{id}:deactivate", Least(Admin)),
    ("POST", "/fleet/workers/{id}:test", Least(Operator)),
    ("GET", "/fleet/proxies", Least(Viewer)),
    ("POST", "/fleet/proxies", Least(Admin)),
    ("GET", "/fleet/proxies/{id}", Least(Viewer)),
    ("PUT", "/fleet/proxies/{id}", Least(Admin)),
    ("DELETE", "/fleet/proxies/{id}", Least(Admin)),
    ("POST", "/fleet/proxies/{id}:activate", Least(Admin)),
    ("POST", "/fleet/proxies/{id}:deactivate", Least(Admin)),
    ("POST", "/fleet/proxies/{id}:reactivate", Least(Admin)),
    ("POST", "/fleet/proxies/{id}:test", Least(Operator)),
    ("GET", "/fleet/writers", Least(Viewer)),
    ("POST", "/fleet/writers", Least(Admin)),
    ("GET", "/fleet/writers/{id}", Least(Viewer)),
    ("PUT", "/fleet/writers/{id}", Least(Admin)),
    ("DELETE", "/fleet/writers/{id}", Least(Admin)),
    ("POST", "/fleet/writers/{id}:activate", Least(Admin)),
    ("POST", "/fleet/writers/{id}:deactivate", Least(Admin)),
    ("POST", "/fleet/writers/{id}:test", Least(Operator)),
];

/// Pages and what they are made of, by how their routes begin: what GET needs, what POST does. The
/// first line that fits counts; any other method needs an admin.
pub const PAGES: &[(&str, Need, Need)] = &[
    // To the overview.
    ("/", Open, Least(Admin)),
    ("/assets", Open, Least(Admin)),
    ("/ui/login", Open, Open),
    ("/ui/logout", Known, Known),
    ("/ui/preferences", Least(Viewer), Least(Viewer)),
    ("/ui/keys", Least(Admin), Least(Admin)),
    ("/ui/webhooks", Least(Admin), Least(Admin)),
    ("/ui/settings", Least(Viewer), Least(Admin)),
    ("/ui/workers", Least(Viewer), Least(Admin)),
    ("/ui/proxies", Least(Viewer), Least(Admin)),
    ("/ui/writers", Least(Viewer), Least(Admin)),
    ("/ui", Least(Viewer), Least(Operator)),
];

/// What is asked of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Need(Need),
    /// The path has only these methods.
    OnlyBy(String),
    /// There is such a route, but no line: nobody may call it.
    Closed,
}

/// What is asked of who calls `method` on a route, as documented; `None` is no route at all.
pub(super) fn rule(method: &Method, route: Option<&str>) -> Rule {
    let Some(route) = route else { return Rule::Need(Known) };
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    if let Some((_, get, post)) = PAGES.iter().find(|(beginning, ..)| is_below(route, beginning)) {
        return Rule::Need(match method {
            "GET" => *get,
            "POST" => *post,
            _ => Least(Admin),
        });
    }
    let methods: Vec<&str> =
        ROUTES.iter().filter(|(_, path, _)| *path == route).map(|(method, ..)| *method).collect();
    let line = ROUTES.iter().find(|(of, path, _)| *of == method && *path == route);
    match line {
        Some((.., need)) => Rule::Need(*need),
        None if methods.is_empty() => Rule::Closed,
        None => Rule::OnlyBy(methods.join(",").replace("GET", "GET,HEAD")),
    }
}

/// Whether a path is `beginning` or stands below it.
pub(crate) fn is_below(path: &str, beginning: &str) -> bool {
    path.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Need {
    /// As it is documented.
    pub fn as_str(self) -> &'static str {
        match self {
            Open => "open",
            Known => "any",
            Least(role) => role.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn need(method: &Method, route: &str) -> Need {
        match rule(method, Some(route)) {
            Rule::Need(need) => need,
            other => panic!("{method} {route}: {other:?}"),
        }
    }

    #[test]
    fn no_line_stands_twice() {
        let lines: BTreeSet<_> = ROUTES.iter().map(|(method, path, _)| (method, path)).collect();
        assert_eq!(lines.len(), ROUTES.len());
    }

    #[test]
    fn a_page_s_beginning_is_whole_segments_and_the_first_line_counts() {
        assert_eq!(need(&Method::GET, "/ui"), Least(Viewer));
        assert_eq!(need(&Method::POST, "/ui/missions/{id}/cancel"), Least(Operator));
        assert_eq!(need(&Method::POST, "/ui/workers/{id}"), Least(Admin));
        assert_eq!(need(&Method::POST, "/ui/workersome"), Least(Operator));
        assert_eq!(need(&Method::GET, "/ui/keys"), Least(Admin));
        assert_eq!(need(&Method::DELETE, "/ui/missions"), Least(Admin));
        assert_eq!(need(&Method::HEAD, "/assets/{*path}"), Open);
        assert_eq!(rule(&Method::GET, Some("/uix")), Rule::Closed);
    }

    #[test]
    fn a_route_without_a_line_is_closed_and_a_method_without_one_is_none() {
        assert_eq!(rule(&Method::GET, Some("/new")), Rule::Closed);
        assert_eq!(rule(&Method::PATCH, Some("/tasks")), Rule::OnlyBy("GET,HEAD,POST".into()));
        assert_eq!(need(&Method::HEAD, "/tasks"), Least(Viewer));
        assert_eq!(rule(&Method::GET, None), Rule::Need(Known));
    }

    #[test]
    fn the_documented_tables_are_these() {
        let documented = include_str!("../../../../docs/security.md");
        let table = |head: &str| -> Vec<Vec<&str>> {
            let lines = documented.lines().skip_while(|line| !line.starts_with(head)).skip(2);
            let rows = lines.take_while(|line| line.starts_with('|'));
            rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
        };
        let routes = ROUTES.iter().map(|(method, path, need)| {
            vec![(*method).to_owned(), format!("`{path}`"), need.as_str().to_owned()]
        });
        assert_eq!(table("| method |"), routes.collect::<Vec<_>>());
        let pages = PAGES.iter().map(|(beginning, get, post)| {
            vec![format!("`{beginning}`"), get.as_str().to_owned(), post.as_str().to_owned()]
        });
        assert_eq!(table("| pages below |"), pages.collect::<Vec<_>>());
    }
}
