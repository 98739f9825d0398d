//! What the lists of workers, proxies and writers have in common.

use jiff::Timestamp;
use lavra_fleet::model::WorkerStatus;
use serde::Deserialize;

use crate::ui::overview::Tile;
use crate::ui::page::Shell;
use crate::ui::texts::Things;

const PAGE: usize = 100;

/// What the address of a list asks for.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ListQuery {
    pub(super) state: Option<String>,
    /// The last one of the page before.
    pub(super) after: Option<String>,
}

/// How the last test went.
#[derive(Debug)]
pub(super) struct TestView {
    pub(super) tone: &'static str,
    pub(super) word: &'static str,
    pub(super) iso: String,
    pub(super) ago: String,
}

impl TestView {
    pub(super) fn new(
        at: Option<Timestamp>,
        ok: Option<bool>,
        t: &Things,
        shell: &Shell,
    ) -> Option<Self> {
        let (at, ok) = (at?, ok?);
        let (tone, word) = if ok { ("ok", t.test_ok) } else { ("bad", t.test_failed) };
        Some(Self { tone, word, iso: shell.f.iso(at), ago: shell.f.ago(at) })
    }
}

/// Those after one, at most a page of them, and after which the next page begins.
pub(super) fn paged<T>(
    mut all: Vec<T>,
    after: Option<&str>,
    id: impl Fn(&T) -> &str,
) -> (Vec<T>, Option<String>) {
    if let Some(place) = all.iter().position(|one| Some(id(one)) == after) {
        all.drain(..=place);
    }
    let more = all.len() > PAGE;
    all.truncate(PAGE);
    let last = all.last().filter(|_| more).map(|last| id(last).to_owned());
    (all, last)
}

/// A tile for each state, with how many are in it.
pub(super) fn tiles(
    path: &str,
    states: &[(&'static str, &'static str)],
    here: Option<&str>,
    count: impl Fn(&str) -> usize,
    shell: &Shell,
) -> Vec<Tile> {
    let tile = |(slug, name): &(&'static str, &'static str)| Tile {
        slug,
        name,
        count: shell.f.number(count(slug) as i64),
        is_here: here == Some(*slug),
        href: format!("{path}?state={slug}"),
    };
    states.iter().map(tile).collect()
}

pub(crate) fn status_name(status: WorkerStatus, t: &Things) -> &'static str {
    match status {
        WorkerStatus::Idle => t.status_idle,
        WorkerStatus::Initializing => t.status_initializing,
        WorkerStatus::Ready => t.status_ready,
        WorkerStatus::Scraping => t.status_scraping,
        WorkerStatus::Error => t.status_error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_a_gap() {
        let all: Vec<String> = (0..250).map(|number| format!("{number:03}")).collect();
        let mut seen = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let (page, next) = paged(all.clone(), after.as_deref(), |id| id);
            assert!(page.len() <= PAGE);
            seen.extend(page);
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, all);
        let (page, _) = paged(all, Some("gone"), |id| id);
        assert_eq!(page[0], "000", "one that is gone begins anew");
    }
}
