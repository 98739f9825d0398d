//! What the world has and a peer has not, by the keys of the records.

use std::collections::HashSet;
use std::fmt;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::numbers::thousands;
use crate::http;
use crate::torture::half::PAGES;

/// All that the world has, in the order of its pages.
const TRUTH: &str = "/_world/truth?path=/v1/contratacoes/publicacao&codigoModalidadeContratacao=6\
                     &dataInicial=20240701&dataFinal=20240731";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    records: usize,
    of: usize,
    /// Those that a record is missing of.
    pages: usize,
}

impl Missing {
    pub(super) fn of(port: u16, stored: &HashSet<String>) -> Result<Self> {
        let (_, body) = http::send(port, "GET", TRUTH, &[], "")?;
        let keys: Vec<String> = body.lines().map(key).collect::<Result<_>>()?;
        ensure!(!keys.is_empty(), "the world has no records");
        Ok(Self::among(&keys, stored))
    }

    fn among(keys: &[String], stored: &HashSet<String>) -> Self {
        let is_missing = |key: &&String| !stored.contains(*key);
        let pages = keys.chunks(keys.len().div_ceil(PAGES as usize));
        Self {
            records: keys.iter().filter(is_missing).count(),
            of: keys.len(),
            pages: pages.filter(|page| page.iter().any(|key| is_missing(&key))).count(),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.records == 0 {
            return formatter.write_str("nothing");
        }
        let [records, of] = [self.records, self.of].map(|count| thousands(count as f64));
        write!(formatter, "{records} of {of} records, on {} pages", self.pages)
    }
}

fn key(line: &str) -> Result<String> {
    let entry: Value = serde_json::from_str(line).context("the world's truth")?;
    Ok(entry["key"].as_str().context("a record without a key")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_missing_when_one_of_its_records_is() {
        let keys: Vec<String> = (0..2 * PAGES).map(|number| number.to_string()).collect();
        let all: HashSet<String> = keys.iter().cloned().collect();
        assert_eq!(Missing::among(&keys, &all).to_string(), "nothing");
        let few = all.into_iter().filter(|key| !["0", "1", "7"].contains(&key.as_str())).collect();
        let missing = Missing::among(&keys, &few);
        assert_eq!(missing, Missing { records: 3, of: 1920, pages: 2 });
        assert_eq!(missing.to_string(), "3 of 1 920 records, on 2 pages");
    }
}
