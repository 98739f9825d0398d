//! The dashboard and the alerts, held against what the servers measure: a name that nobody exports shows nothing,
//! and nobody misses it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names that the code gives to `counter!`, `gauge!` and `histogram!`.
fn exported() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut directories: Vec<PathBuf> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("src"))
        .collect();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = read(&path);
                let macros =
                    ["metrics::counter!(\"", "metrics::gauge!(\"", "metrics::histogram!(\""];
                let found = macros.iter().flat_map(|start| text.split(start).skip(1));
                names.extend(found.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }
    names
}

/// The names that a text asks for; a histogram is asked for by its parts.
fn asked(text: &str) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_name(letter)).filter(|word| word.starts_with("lavra_"));
    let parts = ["_bucket", "_count", "_sum"];
    words
        .map(|word| {
            parts.iter().find_map(|part| word.strip_suffix(part)).unwrap_or(word).to_owned()
        })
        .collect()
}

#[test]
fn the_dashboard_shows_what_is_measured_all_of_it_and_nothing_else() {
    let dashboard = read(&root().join("packaging/grafana/lavra.json"));
    assert!(!exported().is_empty());
    assert_eq!(asked(&dashboard), exported());
    serde_json::from_str::<serde_json::Value>(&dashboard).unwrap();
}

#[test]
fn everything_that_is_measured_is_described() {
    let text = read(&root().join("crates/web/src/metrics.rs"));
    let (_, rest) = text.split_once("fn describe() {").unwrap();
    let (described, _) = rest.split_once("\n}\n").unwrap();
    assert_eq!(asked(described), exported());
}

#[test]
fn the_alerts_and_the_documents_ask_for_what_is_measured() {
    let alerts = read(&root().join("packaging/prometheus/alerts.yml"));
    let operations = read(&root().join("docs/operations.md"));
    // Of that page the table of metrics: databases have such names too.
    let rows: Vec<&str> = operations.lines().filter(|line| line.starts_with("| `lavra_")).collect();
    for asked in [asked(&alerts), asked(&rows.join("\n"))] {
        assert!(!asked.is_empty());
        let measured = exported();
        let unknown: Vec<&String> = asked.difference(&measured).collect();
        assert!(unknown.is_empty(), "nobody measures {unknown:?}");
    }
}

#[test]
fn every_alert_has_a_line_that_says_what_to_do() {
    let alerts = read(&root().join("packaging/prometheus/alerts.yml"));
    let alerts: BTreeSet<&str> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let operations = read(&root().join("docs/operations.md"));
    let rows = operations.lines().filter_map(|line| line.strip_prefix("| `Lavra"));
    let described: BTreeSet<String> = rows
        .map(|row| format!("Lavra{}", row.split_once('`').map_or(row, |(name, _)| name)))
        .collect();
    assert!(!alerts.is_empty());
    assert!(described.iter().map(String::as_str).eq(alerts), "{described:?}");
}
