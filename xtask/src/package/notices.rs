//! The licences of what is compiled into the program: most of them want to go along with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::exec;
use crate::workspace::Workspace;

/// What the files begin with in which a crate has its licence.
const NAMES: [&str; 5] = ["licen", "copying", "notice", "unlicense", "copyright"];

/// Every text once, with the names of those whose it is.
pub(super) fn text(workspace: &Workspace) -> Result<String> {
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1"]);
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let metadata: Value = serde_json::from_str(&exec::capture(&mut cargo)?)?;
    let compiled_in = compiled_in(&metadata)?;
    let mut whose: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut names = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        // Ours is in the copyright.
        if package["source"].is_null() || !compiled_in.contains(word(package, "id")?) {
            continue;
        }
        let name = format!("{} {}", word(package, "name")?, word(package, "version")?);
        let licence = package["license"].as_str().unwrap_or("as its text says");
        let authors = package["authors"].as_array().into_iter().flatten();
        let authors: Vec<&str> = authors.filter_map(Value::as_str).collect();
        let by =
            if authors.is_empty() { String::new() } else { format!(", {}", authors.join(", ")) };
        names.push(format!("{name}: {licence}{by}"));
        let manifest = Path::new(word(package, "manifest_path")?);
        for text in licences(manifest.parent().context("a manifest without a directory")?)? {
            whose.entry(text).or_default().push(name.clone());
        }
    }
    ensure!(names.len() > 100 && whose.len() > 10, "{} crates are not all", names.len());
    let texts = whose.into_iter().map(|(text, whose)| format!("{}\n\n{text}\n", whose.join(", ")));
    let line = format!("\n{}\n\n", "-".repeat(78));
    let head = "lavra is made with these libraries. The texts of their licences follow.\n";
    Ok(format!("{head}\n{}\n{line}{}", names.join("\n"), texts.collect::<Vec<_>>().join(&line)))
}

/// The ids of what `lavra` is linked from, itself included.
fn compiled_in(metadata: &Value) -> Result<BTreeSet<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("no graph of dependencies")?;
    let nodes: BTreeMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut start = packages.filter(|package| package["name"] == "lavra");
    let mut open = vec![word(start.next().context("no package lavra")?, "id")?];
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !found.insert(id) {
            continue;
        }
        let needs = nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        // Those for building and testing have another kind.
        let needs = needs.filter(|need| {
            let kinds = need["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        });
        open.extend(needs.filter_map(|need| need["pkg"].as_str()));
    }
    Ok(found)
}

fn licences(directory: &Path) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if NAMES.iter().any(|start| name.starts_with(start)) && entry.file_type()?.is_file() {
            let text = std::fs::read(entry.path())?;
            texts.insert(String::from_utf8_lossy(&text).replace('\r', "").trim().to_owned());
        }
    }
    Ok(texts)
}

fn word<'value>(package: &'value Value, key: &str) -> Result<&'value str> {
    package[key].as_str().with_context(|| format!("a package without {key}"))
}
