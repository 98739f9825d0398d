//! The records of the extraction against the world, by key and hash; and what the program says of itself.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::torture::all::parts::Parts;
use crate::torture::all::promises::LISTS;
use crate::torture::extract::truth::{self, Entry};

/// Findings of the program that are shown; it counts all of them.
const SHOWN: usize = 5;

/// What a command said, however it ended: those here end badly when there is something to tell.
struct Said {
    stdout: String,
    /// With how it ended.
    otherwise: String,
    is_well: bool,
}

fn said(command: &mut Command) -> Result<Said> {
    let output = command.stdin(Stdio::null()).output().context("`lavra` cannot be started")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    Ok(Said {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        otherwise: format!("{}: {}", output.status, stderr.trim()),
        is_well: output.status.success(),
    })
}

/// The program's own audit.
pub(super) fn own(parts: &Parts) -> Result<Vec<String>> {
    let said = said(parts.lavra().args(["--json", "extract", "audit", "pncp"]))?;
    Ok(problems(&said).into_iter().collect())
}

fn problems(said: &Said) -> Option<String> {
    let Ok(report) = serde_json::from_str::<Value>(&said.stdout) else {
        return Some(format!("the program's own audit gave no report ({})", said.otherwise));
    };
    if report["problems"] == json!({}) && said.is_well {
        return None;
    }
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let first: Vec<String> = findings.iter().take(SHOWN).map(Value::to_string).collect();
    Some(format!("the program's own audit found {}: {}", report["problems"], first.join(", ")))
}

/// Compares all lists of these months, and says how many records are stored.
pub(super) fn compare(
    parts: &Parts,
    months: &BTreeSet<String>,
    findings: &mut Vec<String>,
) -> Result<usize> {
    let out = parts.path().join("export");
    let mut export = parts.lavra();
    export.args(["extract", "export", "pncp", "--format", "jsonl", "--out"]).arg(&out);
    let said = said(&mut export)?;
    if !said.is_well {
        findings.push(format!("the export is not complete ({})", said.otherwise));
    }
    let mut compared = 0;
    for month in months {
        for (name, path, values) in LISTS {
            let wanted = match values {
                None => truth::of_a_list(parts.world(), month, path, "")?,
                Some(values) => truth::of_the_world(parts.world(), month, 1..=u64::from(values))?,
            };
            let stored = exported(&out, name, month)?;
            compared += stored.len();
            findings
                .extend(difference(stored, wanted).map(|text| format!("{name} {month}: {text}")));
        }
    }
    Ok(compared)
}

/// What is in the file of a list and month: nothing where there is no file.
fn exported(out: &Path, name: &str, month: &str) -> Result<Vec<Entry>> {
    let is_missing = |error: &anyhow::Error| {
        let cause = error.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
    };
    match truth::of_an_export(out, name, month) {
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        entries => entries,
    }
}

fn difference(mut stored: Vec<Entry>, mut wanted: Vec<Entry>) -> Option<String> {
    stored.sort_unstable();
    wanted.sort_unstable();
    (stored != wanted).then(|| {
        let (stored, wanted) = (stored.len(), wanted.len());
        format!("{stored} records are stored, the world has {wanted}, and they are not the same")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stdout: &str, is_well: bool) -> Said {
        Said {
            stdout: stdout.to_owned(),
            otherwise: "exit status: 3: not all is well".into(),
            is_well,
        }
    }

    #[test]
    fn the_programs_problems_are_told_although_it_ends_badly() {
        assert_eq!(problems(&words(r#"{"problems": {}, "findings": []}"#, true)), None);
        let found = problems(&words(
            r#"{"problems": {"page_missing": 1}, "findings": [{"page": 2}]}"#,
            false,
        ));
        assert_eq!(
            found.as_deref(),
            Some(r#"the program's own audit found {"page_missing":1}: {"page":2}"#)
        );
        let silent = problems(&words("", false)).unwrap_or_default();
        assert!(silent.contains("exit status: 3: not all is well"), "{silent}");
    }

    #[test]
    fn a_list_without_a_file_has_no_records() {
        let nowhere = tempfile::tempdir().unwrap();
        let stored = exported(nowhere.path(), "atas_atualizacao", "2025-01").unwrap();
        assert_eq!(difference(stored.clone(), Vec::new()), None);
        let found = difference(stored, vec!["a".into()]).unwrap();
        assert!(found.starts_with("0 records are stored, the world has 1"), "{found}");
    }

    #[test]
    fn a_record_that_is_twice_or_another_is_a_difference() {
        let entries = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let differ = |stored: &[&str]| difference(entries(stored), entries(&["a", "b"])).is_some();
        assert!(!differ(&["b", "a"]));
        assert!(differ(&["a", "b", "b"]) && differ(&["a", "c"]) && differ(&["a"]));
    }
}
