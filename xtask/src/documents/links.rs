//! Links between documents: each leads to a file that is there, and each anchor to a heading.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// One line for each link that leads nowhere.
pub(crate) fn broken(root: &Path, documents: &[PathBuf]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for document in documents {
        let text = read(document)?;
        let name = document.strip_prefix(root).unwrap_or(document).display();
        for (line, target) in links(&text) {
            if let Some(why) = fault(document, &text, target)? {
                broken.push(format!("{name}:{line}: {target}: {why}"));
            }
        }
    }
    Ok(broken)
}

/// The text of a document without its links that lead nowhere; their words stay.
pub(crate) fn without_broken(document: &Path) -> Result<String> {
    let text = read(document)?;
    let mut kept = text.clone();
    for (_, target) in links(&text) {
        if fault(document, &text, target)?.is_none() {
            continue;
        }
        let end = format!("]({target})");
        while let Some(close) = kept.find(&end) {
            let open = kept.get(..close).and_then(|before| before.rfind('['));
            let open = open.with_context(|| format!("{target} has no words"))?;
            kept.replace_range(close..close + end.len(), "");
            kept.replace_range(open..=open, "");
        }
    }
    Ok(kept)
}

fn fault(document: &Path, text: &str, target: &str) -> Result<Option<&'static str>> {
    // Other machines are not asked, and items of the code are rustdoc's to check.
    if target.contains("://") || target.starts_with("mailto:") || target.contains("::") {
        return Ok(None);
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = match document.parent() {
        Some(directory) if !path.is_empty() => directory.join(path),
        _ => document.to_owned(),
    };
    if !file.exists() {
        return Ok(Some("there is no such file"));
    }
    if anchor.is_empty() {
        return Ok(None);
    }
    let headings = if path.is_empty() { anchors(text) } else { anchors(&read(&file)?) };
    Ok((!headings.contains(anchor)).then_some("there is no such heading"))
}

fn read(document: &Path) -> Result<String> {
    std::fs::read_to_string(document).with_context(|| format!("cannot read {}", document.display()))
}

/// The lines outside of code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((number + 1, line))
    })
}

/// What `[text](target)`, `[text]: target` and pictures lead to.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let is_definition = line.starts_with('[') && !line.starts_with("[^");
        let defined = line.split_once("]: ").filter(|_| is_definition).map(|(_, target)| target);
        let outside_code = line.split('`').step_by(2);
        // A link's text may be code, which cuts the line between the brackets; its target never is.
        let inline = outside_code.flat_map(|part| part.split("](").skip(1));
        let targets = inline.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        let words = targets.chain(defined).filter_map(|target| target.split_whitespace().next());
        found.extend(words.map(|target| (number, target)));
    }
    found
}

/// The names under which a reader's program finds the headings: small letters, spaces as `-`, no other signs;
/// a second one of the same name has a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter if letter.is_alphanumeric() => Some(letter),
            _ => None,
        });
        let name = kept.flat_map(char::to_lowercase).collect::<String>();
        let again = (1..).map(|count| format!("{name}-{count}"));
        let free = std::iter::once(name.clone()).chain(again).find(|one| !anchors.contains(one));
        anchors.extend(free);
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_link_that_leads_nowhere_the_words_stay() {
        let place = tempfile::tempdir().unwrap();
        let page = place.path().join("page.md");
        std::fs::write(
            &page,
            "# A\n[here](#a), [the\n`code`](../gone.rs) and [b](x.md#y) [b](x.md#y)\n",
        )
        .unwrap();
        assert_eq!(without_broken(&page).unwrap(), "# A\n[here](#a), the\n`code` and b b\n");
    }

    #[test]
    fn what_leads_nowhere_is_told_with_its_line() {
        let place = tempfile::tempdir().unwrap();
        let (one, other) = (place.path().join("one.md"), place.path().join("docs/other.md"));
        std::fs::create_dir(place.path().join("docs")).unwrap();
        std::fs::write(&other, "# Other\n\n## `[limits]` and more\n\n## More\n\n## More\n")
            .unwrap();
        std::fs::write(
            &one,
            "# One\n[a](docs/other.md#limits-and-more) [b](docs/other.md#more-1) [`c`](docs/other.md)\n\
             ```sh\n[code](gone.md)\n```\n`[code](gone.md)` <https://example.com> [d](#one)\n\
             [e](gone.md), [f](docs/other.md#gone)\n![p](gone.png)\n[g]: docs/gone.md\n[h](#two)\n",
        )
        .unwrap();
        let broken = broken(place.path(), &[one, other]).unwrap();
        assert_eq!(
            broken,
            [
                "one.md:7: gone.md: there is no such file",
                "one.md:7: docs/other.md#gone: there is no such heading",
                "one.md:8: gone.png: there is no such file",
                "one.md:9: docs/gone.md: there is no such file",
                "one.md:10: #two: there is no such heading",
            ]
        );
    }
}
