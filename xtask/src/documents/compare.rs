//! What a block shows, held against what a command said: loosely, since ids, times and sizes are others each time.

use std::collections::BTreeMap;

/// The lines of `shows` that are not in what was said.
pub(super) fn missing<'a>(shows: &'a [String], said: &str) -> Vec<&'a str> {
    let said: Vec<String> = said.lines().map(loose).collect();
    let is_there = |line: &str| line.trim() == "…" || said.contains(&loose(line));
    shows.iter().map(String::as_str).filter(|line| !is_there(line)).collect()
}

/// Spaces as one; numbers, times and ids as `#`, but for a lone 0.
fn loose(line: &str) -> String {
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn word(word: &str) -> String {
    // A piece of an id may be letters only.
    let word = ids(word).fold(word.to_owned(), |word, id| word.replace(id, "#"));
    let mut text = String::new();
    for part in parts(&word) {
        match is_changing(part) {
            false => text.push_str(part),
            // None is not some: `0 failed` is a promise.
            true if part == "0" && is_alone(part, &word) => text.push_str(part),
            true if text.ends_with('#') => {}
            true => text.push('#'),
        }
    }
    // 15.302718, 2026-11-15T22:24:15Z and 145.96 are one number each, however many digits they have.
    ["#.#", "#-#", "#:#", "#T#", "#Z"].iter().fold(text, |mut text, pair| {
        while text.contains(pair) {
            text = text.replace(pair, "#");
        }
        text
    })
}

fn is_alone(part: &str, word: &str) -> bool {
    word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()) == part
}

/// Runs of letters and digits, and what stands between them.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let same = |letter: char| letter.is_ascii_alphanumeric() == first.is_ascii_alphanumeric();
        let end = rest.find(|letter| !same(letter)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}

/// A number, the `15T22` of a time, or a piece of an id: digits, with no letters but those of such.
fn is_changing(part: &str) -> bool {
    let is_hexadecimal = |letter: char| {
        letter.is_ascii_digit() || ('a'..='f').contains(&letter) || "TZ".contains(letter)
    };
    part.chars().any(|letter| letter.is_ascii_digit()) && part.chars().all(is_hexadecimal)
        || part.len() >= 32 && part.chars().all(|letter| letter.is_ascii_hexdigit())
}

/// Which id stands for which: those that are shown, in their order, for those that were said.
#[derive(Debug, Default)]
pub(super) struct Ids(BTreeMap<String, String>);

impl Ids {
    pub(super) fn learn(&mut self, shows: &[String], said: &str) {
        let is_new =
            |id: &&str| !self.0.contains_key(*id) && !self.0.values().any(|known| known == id);
        let old = unique(shows.iter().flat_map(|line| ids(line)).filter(is_new));
        let new = unique(ids(said).filter(is_new));
        let pairs = old.into_iter().zip(new).map(|(old, new)| (old.to_owned(), new.to_owned()));
        self.0.extend(pairs.collect::<Vec<_>>());
    }

    /// The command with the ids of this run.
    pub(super) fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (shown, said)| text.replace(shown, said))
    }
}

fn unique<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for id in ids {
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

/// UUIDs, and ids such as `mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b`.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '_')
        .filter(|word| is_uuid(word) || is_named(word))
}

fn is_uuid(word: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = word.split('-').collect();
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, length)| is_hexadecimal(part, length))
}

fn is_named(word: &str) -> bool {
    word.split_once('_').is_some_and(|(_, digits)| is_hexadecimal(digits, 32))
}

fn is_hexadecimal(part: &str, length: usize) -> bool {
    part.len() == length && part.chars().all(|letter| letter.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn numbers_times_and_ids_may_differ_and_words_may_not() {
        let shown = lines(
            " 01a1e14f-ade5-7000-8cc3-91c5359e2aa9  http  COMPLETED  2026-11-15T22:24:18.288562Z\n…\nstored 69 pages, 2.95 MiB",
        );
        let said = "ID TYPE\n01b2a1e1-4fad-7000-9999-91c5359e2aff http COMPLETED 2027-01-02T03:04:05Z\n\
                    stored    7 pages, 128 MiB\n";
        assert_eq!(missing(&shown, said), <Vec<&str>>::new());
        let letters =
            |part: &str| format!("{{\"process\":\"01a1e792-{part}-7000-91db-3b6e5d66fdda\"}}");
        assert_eq!(missing(&[letters("eabd")], &letters("5789")), <Vec<&str>>::new());
        let other = said.replace("COMPLETED", "FAILED");
        assert_eq!(missing(&shown, &other).len(), 1);
        assert_eq!(missing(&lines("7 pages"), "7 rows").len(), 1);
        assert_eq!(missing(&lines("3 complete, 0 failed"), "3 complete, 1 failed").len(), 1);
        assert_eq!(missing(&lines("3 complete, 0 failed"), "0 complete, 0 failed").len(), 1);
        assert_eq!(missing(&lines("worker-0 ready"), "worker-1 ready"), <Vec<&str>>::new());
    }

    #[test]
    fn an_id_that_was_shown_is_the_one_that_was_said() {
        let mut ids = Ids::default();
        let shown = "01a1e14f-ade5-7000-8cc3-91c5359e2aa9";
        let said = "01b2a1e1-4fad-7000-9999-91c5359e2aff";
        ids.learn(
            &lines(&format!("created {shown}\n{shown} http")),
            &format!("created {said}\n{said}"),
        );
        assert_eq!(
            ids.apply(&format!("lavra task show {shown}")),
            format!("lavra task show {said}")
        );
        let (mission, real) =
            ("mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b", "mis_0293a1b27c3d7e4f8a5b6c7d8e9f0a1c");
        ids.learn(&lines(&format!("{shown} {mission}")), &format!("{said} {real}"));
        assert_eq!(ids.apply(mission), real);
    }
}
