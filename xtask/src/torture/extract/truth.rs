//! What the world has, and what was stored, as hashes of records, whose keys are part of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::http;

/// The hash of a record in its canonical form.
pub(in crate::torture) type Entry = String;

/// The records of a month, for all values of the fan-out.
pub(in crate::torture) fn of_the_world(
    port: u16,
    month: &str,
    values: RangeInclusive<u64>,
) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for value in values {
        let fan_out = format!("&codigoModalidadeContratacao={value}");
        all.extend(of_a_list(port, month, "/v1/contratacoes/publicacao", &fan_out)?);
    }
    Ok(all)
}

/// The records of a month of one list.
pub(in crate::torture) fn of_a_list(
    port: u16,
    month: &str,
    path: &str,
    fan_out: &str,
) -> Result<Vec<Entry>> {
    let (days, last) = (month.replace('-', ""), last_day(month));
    let path =
        format!("/_world/truth?path={path}{fan_out}&dataInicial={days}01&dataFinal={days}{last}");
    let (_, body) = http::send(port, "GET", &path, &[], "")?;
    body.lines()
        .map(|line| {
            let entry: Value = serde_json::from_str(line).context("the world's truth")?;
            let hash = entry["sha256"].as_str().context("a record without a hash")?;
            Ok(hash.to_owned())
        })
        .collect()
}

/// The last day of a month that is no February of a leap year.
pub(super) fn last_day(month: &str) -> u32 {
    match month.rsplit('-').next() {
        Some("02") => 28,
        Some("04" | "06" | "09" | "11") => 30,
        _ => 31,
    }
}

/// The records of a month, as they were exported.
pub(in crate::torture) fn of_an_export(out: &Path, name: &str, month: &str) -> Result<Vec<Entry>> {
    let file = out.join(format!("{name}/month={month}/{name}-{month}.jsonl"));
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    text.lines()
        .map(|line| {
            let record: &RawValue = serde_json::from_str(line).context("a record is no JSON")?;
            let mut canonical = String::new();
            write_canonical(record, &mut canonical)?;
            Ok(hex(&Sha256::digest(canonical)))
        })
        .collect()
}

/// Keys sorted, no spaces, numbers digit by digit as they stand.
fn write_canonical(value: &RawValue, out: &mut String) -> Result<()> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            out.push('{');
            for (place, (name, member)) in members.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                write!(out, "{comma}{}:", serde_json::to_string(name)?)?;
                write_canonical(member, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text)?;
            out.push('[');
            for (place, element) in elements.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                write_canonical(element, out)?;
            }
            out.push(']');
        }
        Some(b'"') => {
            let content: String = serde_json::from_str(text)?;
            out.push_str(&serde_json::to_string(&content)?);
        }
        _ => out.push_str(text),
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_canonical_has_sorted_keys_and_its_own_digits() {
        let text = r#"{"b": [1.50, {"d":"\u00e9", "c":null}], "a": -0.0}"#;
        let mut canonical = String::new();
        write_canonical(serde_json::from_str(text).unwrap(), &mut canonical).unwrap();
        assert_eq!(canonical, r#"{"a":-0.0,"b":[1.50,{"c":null,"d":"é"}]}"#);
    }
}
