//! The ads that the library has for all missions, against the table that the writer filled.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::http;
use crate::servers::Postgres;
use crate::torture::all::promises::Mission;

/// Ads by their ids.
type Ads = BTreeMap<String, Value>;

/// Holds what is stored against the library, for the missions that were promised and those that are there;
/// says how many are stored.
pub(super) fn compare(
    postgres: &Postgres,
    database: &str,
    library: u16,
    promised: BTreeSet<Mission>,
    findings: &mut Vec<String>,
) -> Result<usize> {
    let counted = counted(postgres, database)?;
    let mut wanted = Ads::new();
    let missions: BTreeSet<Mission> = promised.into_iter().chain(counted.keys().cloned()).collect();
    for mission in missions {
        let truth = truth(library, &mission)?;
        if let Some(count) = counted.get(&mission)
            && *count != Some(truth.len() as u64)
        {
            let (day, media, languages) = &mission;
            let text = format!("counted {count:?} ads, the library has {}", truth.len());
            findings.push(format!("mission {day} {media} {languages}: {text}"));
        }
        wanted.extend(truth);
    }
    let stored = stored(postgres, database)?;
    findings.extend(differences(&stored, &wanted));
    Ok(stored.len())
}

/// What each mission says it has found.
fn counted(postgres: &Postgres, database: &str) -> Result<BTreeMap<Mission, Option<u64>>> {
    let missions = postgres.sql(
        database,
        "SELECT json_build_object('day', date_start, 'media', media_type, 'ads', ads_count,
             'languages', array_to_string(languages, ',')) FROM public.missions",
    )?;
    missions
        .lines()
        .map(|line| {
            let mission: Value = serde_json::from_str(line).context("a mission is no JSON")?;
            let text = |name: &str| mission[name].as_str().unwrap_or_default().to_owned();
            Ok(((text("day"), text("media"), text("languages")), mission["ads"].as_u64()))
        })
        .collect()
}

fn truth(library: u16, (day, media, languages): &Mission) -> Result<Ads> {
    let path = format!(
        "/_world/ads?date_start={day}&date_end={day}&media_type={media}&languages={languages}"
    );
    let (status, body) = http::send(library, "GET", &path, &[], "")?;
    ensure!(status == 200, "{path}: {status} {body}");
    let mut truth: Value = serde_json::from_str(&body).context("the library's truth")?;
    let Value::Array(ads) = truth["ads"].take() else { return Ok(Ads::new()) };
    Ok(ads.into_iter().filter_map(|ad| Some((ad["id"].as_str()?.to_owned(), ad))).collect())
}

fn stored(postgres: &Postgres, database: &str) -> Result<Ads> {
    let rows = postgres
        .sql(database, "SELECT json_build_object('id', id, 'data', data) FROM public.ads")?;
    rows.lines()
        .map(|line| {
            let mut row: Value = serde_json::from_str(line).context("an ad is no JSON")?;
            Ok((row["id"].as_str().unwrap_or_default().to_owned(), row["data"].take()))
        })
        .collect()
}

fn differences(stored: &Ads, wanted: &Ads) -> Vec<String> {
    let missing =
        |these: &Ads, those: &Ads| these.keys().filter(|id| !those.contains_key(*id)).count();
    let is_other = |(id, ad): &(&String, &Value)| wanted.get(*id).is_some_and(|it| it != *ad);
    let counts = [
        ("ads are lost", missing(wanted, stored)),
        ("ads are there that no mission found", missing(stored, wanted)),
        ("ads are not as the library has them", stored.iter().filter(is_other).count()),
    ];
    let found = counts.into_iter().filter(|(_, count)| *count > 0);
    found.map(|(what, count)| format!("{count} {what}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ads_that_are_lost_strange_or_changed_are_found() {
        let ads = |ads: &[(&str, u32)]| -> Ads {
            ads.iter().map(|(id, text)| ((*id).to_owned(), json!({ "text": text }))).collect()
        };
        let wanted = ads(&[("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(differences(&wanted, &wanted), Vec::<String>::new());
        assert_eq!(
            differences(&ads(&[("a", 1), ("b", 9), ("d", 4)]), &wanted),
            [
                "1 ads are lost",
                "1 ads are there that no mission found",
                "1 ads are not as the library has them"
            ]
        );
    }
}
