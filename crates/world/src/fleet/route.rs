//! Whom a URL names, and what it asks there.

use std::borrow::Cow;

/// One of the fleet's servers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    Worker(usize),
    Writer(usize),
}

/// A question that the APIs know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Route<'a> {
    OpenSession,
    SessionStatus,
    CloseSession,
    StartScrape,
    Job(&'a str),
    CancelJob(&'a str),
    Results(&'a str),
    Process,
    Write(Cow<'a, str>),
    Health,
    /// Known, but not by this method.
    WrongMethod,
    Nowhere,
}

impl Route<'_> {
    pub(super) const NAMES: [&'static str; 11] = [
        "open_session",
        "session_status",
        "close_session",
        "start_scrape",
        "job",
        "cancel_job",
        "results",
        "process",
        "write",
        "health",
        "elsewhere",
    ];

    /// Its place among the names.
    pub(super) const fn number(&self) -> usize {
        match self {
            Self::OpenSession => 0,
            Self::SessionStatus => 1,
            Self::CloseSession => 2,
            Self::StartScrape => 3,
            Self::Job(_) => 4,
            Self::CancelJob(_) => 5,
            Self::Results(_) => 6,
            Self::Process => 7,
            Self::Write(_) => 8,
            Self::Health => 9,
            Self::WrongMethod | Self::Nowhere => 10,
        }
    }
}

/// The server that a URL names, and the question; none where there is no such kind of server.
pub(super) fn route<'a>(method: &str, url: &'a str) -> Option<(Place, Route<'a>)> {
    let path = path(url);
    let mut segments = path.trim_start_matches('/').split('/');
    let (kind, number) = (segments.next()?, segments.next()?.parse().ok()?);
    let rest = [segments.next(), segments.next(), segments.next(), segments.next()];
    match kind {
        "worker" => Some((Place::Worker(number), of_worker(method, rest))),
        "writer" => Some((Place::Writer(number), of_writer(method, rest))),
        _ => None,
    }
}

fn of_worker<'a>(method: &str, path: [Option<&'a str>; 4]) -> Route<'a> {
    match (method, path) {
        ("POST", [Some("session"), None, ..]) => Route::OpenSession,
        ("DELETE", [Some("session"), None, ..]) => Route::CloseSession,
        ("GET", [Some("session"), Some("status"), None, _]) => Route::SessionStatus,
        ("POST", [Some("scrape"), None, ..]) => Route::StartScrape,
        ("GET", [Some("scrape"), Some(id), None, _]) => Route::Job(id),
        ("POST", [Some("scrape"), Some(id), Some("cancel"), None]) => Route::CancelJob(id),
        (_, [Some("session" | "scrape"), ..]) => Route::WrongMethod,
        ("GET", [Some(id), Some(file), None, _])
            if file.strip_suffix("_results.json") == Some(id) =>
        {
            Route::Results(id)
        }
        _ => Route::Nowhere,
    }
}

fn of_writer<'a>(method: &str, path: [Option<&'a str>; 4]) -> Route<'a> {
    match (method, path) {
        ("POST", [Some("process"), None, ..]) => Route::Process,
        ("GET", [Some("status"), Some(id), None, _]) => Route::Write(decoded(id)),
        ("GET", [Some("health"), None, ..]) => Route::Health,
        (_, [Some("process" | "status" | "health"), ..]) => Route::WrongMethod,
        _ => Route::Nowhere,
    }
}

/// The path of a URL, without its query.
fn path(url: &str) -> &str {
    let below = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default(),
        None => url,
    };
    below.split(['?', '#']).next().unwrap_or_default()
}

/// `%2F` and its like, as they were meant.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex =
            after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_server_and_question_whatever_the_host() {
        let job = Some((Place::Worker(3), Route::Job("scrape_1")));
        assert_eq!(route("GET", "http://127.0.0.1:80/worker/3/scrape/scrape_1?x=1"), job);
        assert_eq!(route("GET", "/worker/3/scrape/scrape_1"), job);
        let results = Some((Place::Worker(0), Route::Results("a")));
        assert_eq!(route("GET", "https://x/worker/0/a/a_results.json"), results);
        assert_eq!(
            route("GET", "/worker/0/a/b_results.json"),
            Some((Place::Worker(0), Route::Nowhere))
        );
        let write = Some((Place::Writer(1), Route::Write("a/b".into())));
        assert_eq!(route("GET", "http://x/writer/1/status/a%2Fb"), write);
        assert_eq!(route("PUT", "/writer/0/process"), Some((Place::Writer(0), Route::WrongMethod)));
        for url in ["", "http://", "http://x", "/worker", "/worker/x/session", "/reader/0/x"] {
            assert_eq!(route("GET", url), None, "{url}");
        }
    }

    #[test]
    fn a_broken_escape_stays_as_it_is() {
        assert_eq!(decoded("%"), "%");
        assert_eq!(decoded("%zz%41"), "%zzA");
    }
}
