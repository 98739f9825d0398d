//! The canonical form of a record, and its hash.
//!
//! Keys in the order of their names at every level, no spaces, texts escaped only where they must
//! be, **numbers as they stand on the wire** (`30000.0000` stays so): two answers with the same
//! records have the same hashes whatever the order of their keys, and a client that read a number
//! and wrote it otherwise is found out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::endpoint::Endpoint;
use crate::json::quoted;

/// A record by its natural key and the hash of its canonical form.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
pub struct Entry {
    pub key: String,
    pub sha256: String,
}

/// The canonical form of any JSON text.
pub fn canonical(json: &str) -> Result<String, serde_json::Error> {
    let mut out = Vec::with_capacity(json.len());
    write(&mut out, serde_json::from_str(json)?)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn write(out: &mut Vec<u8>, value: &RawValue) -> Result<(), serde_json::Error> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            list(out, *b"{}", fields.into_iter(), |out, (name, value)| {
                quoted(out, &name);
                out.push(b':');
                write(out, value)
            })
        }
        Some(b'[') => {
            let values: Vec<&RawValue> = serde_json::from_str(text)?;
            list(out, *b"[]", values.into_iter(), write)
        }
        Some(b'"') => {
            quoted(out, &serde_json::from_str::<String>(text)?);
            Ok(())
        }
        _ => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
}

fn list<T>(
    out: &mut Vec<u8>,
    [open, close]: [u8; 2],
    things: impl Iterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    out.push(open);
    for (index, thing) in things.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, thing)?;
    }
    out.push(close);
    Ok(())
}

/// SHA-256 of a text in canonical form, in hexadecimal.
pub(crate) fn hash(canonical: &[u8]) -> String {
    let digest = Sha256::digest(canonical);
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _never_fails = write!(text, "{byte:02x}");
        text
    })
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
}

/// The records of a page as a client stored it, in their order: what [`Truth::entries`] has of the
/// same positions. A plan counts as one record for each of its items, the plan with that item alone.
///
/// [`Truth::entries`]: crate::Truth::entries
pub fn page_entries(endpoint: Endpoint, body: &str) -> Result<Vec<Entry>, serde_json::Error> {
    let page: Page<'_> = serde_json::from_str(body)?;
    let mut entries = Vec::with_capacity(page.data.len());
    for record in page.data {
        if endpoint.counts_items() {
            entries.extend(items(record)?);
        } else {
            let key = natural_key(endpoint, record)?;
            entries.push(Entry { key, sha256: hash(canonical(record.get())?.as_bytes()) });
        }
    }
    Ok(entries)
}

fn items(plan: &RawValue) -> Result<Vec<Entry>, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Plan<'a> {
        id_pca_pncp: String,
        #[serde(borrow)]
        itens: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Item {
        numero_item: u64,
    }
    let Plan { id_pca_pncp, itens } = serde_json::from_str(plan.get())?;
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(plan.get())?;
    let each = itens.into_iter().map(|item| {
        let Item { numero_item } = serde_json::from_str(item.get())?;
        fields.insert("itens".into(), RawValue::from_string(format!("[{}]", item.get()))?);
        let alone = canonical(&serde_json::to_string(&fields)?)?;
        Ok(Entry { key: format!("{id_pca_pncp}|{numero_item}"), sha256: hash(alone.as_bytes()) })
    });
    each.collect()
}

fn natural_key(endpoint: Endpoint, record: &RawValue) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Instrument {
        cnpj: String,
        ano: u64,
        sequencial_contrato: u64,
        sequencial_instrumento_cobranca: u64,
    }
    #[derive(Deserialize)]
    struct Controlled {
        #[serde(rename = "numeroControlePNCPAta", alias = "numeroControlePNCP")]
        control: String,
    }
    if endpoint == Endpoint::InstrumentosCobranca {
        let it: Instrument = serde_json::from_str(record.get())?;
        let (contract, own) = (it.sequencial_contrato, it.sequencial_instrumento_cobranca);
        Ok(format!("{}|{}|{contract}|{own}", it.cnpj, it.ano))
    } else {
        Ok(serde_json::from_str::<Controlled>(record.get())?.control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_at_every_level_and_numbers_stay() {
        let json = r#" {"b": [ {"z":1.0000,"a":"\u00e3\/"} ], "a":-1e5 } "#;
        assert_eq!(canonical(json).unwrap(), r#"{"a":-1e5,"b":[{"a":"ã/","z":1.0000}]}"#);
    }

    #[test]
    fn what_is_not_json_has_no_canonical_form() {
        for wrong in ["", "{", "{\"a\":}", "<html>"] {
            assert!(canonical(wrong).is_err(), "{wrong}");
        }
        assert!(page_entries(Endpoint::Contratos, "{\"data\":[{}]}").is_err());
    }
}
