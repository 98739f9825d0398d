//! Every mission is completed once and its ads are stored once, as the library has them; workers and
//! proxies are free.

use std::collections::{BTreeMap, BTreeSet};

use lavra_db::Database;
use lavra_fleet::Fleet;
use lavra_fleet::bank::{self, Wanted};
use lavra_fleet::model::{EventKind, Mission, MissionStatus, Mode, WorkerStatus};
use lavra_fleet::store::{Filter, LogFilter, NewMission};
use lavra_world::AdLibrary;
use serde_json::Value;

use super::super::plan::filters;
use super::{Audited, Code, Finding};

/// More than there can be.
const MOST: usize = 1_000_000;
/// Ads that are named; all of them are counted.
const NAMED: usize = 3;

pub(super) async fn audit(
    database: &Database,
    fleet: &Fleet,
    wanted: &Wanted,
    library: &AdLibrary,
    audited: &mut Audited,
) -> anyhow::Result<()> {
    let found = fleet.missions(&Filter::default(), None, MOST).await?;
    let mut ads: BTreeMap<String, Due> = BTreeMap::new();
    for wanted in bank::missions(wanted, database.clock())? {
        let name = name(&wanted);
        let same: Vec<&Mission> =
            found.iter().filter(|mission| is_same(mission, &wanted)).collect();
        let [mission] = same.as_slice() else {
            let code = if same.is_empty() { Code::Lost } else { Code::Twice };
            let text = format!("{} missions of it are there", same.len());
            audited.findings.push(Finding::new(code, name, text));
            continue;
        };
        audited.missions += 1;
        let truth = library.truth(&filters(mission));
        audited.findings.extend(one(mission, &name, truth.len()));
        audited.findings.extend(ended_once(fleet, mission, &name).await?);
        let is_due = mission.status == MissionStatus::Completed;
        for ad in truth {
            let Some(id) = ad.get("id").and_then(Value::as_str).map(str::to_owned) else {
                continue;
            };
            ads.entry(id).or_insert(Due { ad, is_due: false }).is_due |= is_due;
        }
    }
    let stored = database.ask("SELECT id, data FROM public.ads", MOST).await?;
    audited.ads = stored.rows.len();
    audited.findings.extend(stored_ads(stored.rows, ads));
    let failed = "SELECT count(*) AS failed FROM kodus_workflow.writer_failed_items";
    let failed = database.ask(&database.schema().apply(failed), 1).await?;
    let failed = failed.rows.first().and_then(|row| row.first()?.as_i64()).unwrap_or(-1);
    if failed != 0 {
        let text = format!("{failed} items could not be written");
        audited.findings.push(Finding::new(Code::Lost, "writer", text));
    }
    audited.findings.extend(held(fleet).await?);
    Ok(())
}

fn name(mission: &NewMission) -> String {
    let NewMission { date_start, media_type, languages, .. } = mission;
    format!("mission {date_start} {media_type} {}", languages.join(","))
}

fn is_same(mission: &Mission, wanted: &NewMission) -> bool {
    (mission.date_start, mission.date_end) == (wanted.date_start, wanted.date_end)
        && mission.media_type == wanted.media_type
        && mission.languages == wanted.languages
}

fn one(mission: &Mission, name: &str, ads: usize) -> Option<Finding> {
    if mission.status != MissionStatus::Completed {
        let error = mission.error_message.as_deref().unwrap_or("no error");
        let code = mission.error_code.map(|code| format!(" {code}")).unwrap_or_default();
        let text = format!("{} is {}{code}: {error}", mission.id, mission.status);
        return Some(Finding::new(Code::Unfinished, name, text));
    }
    let counted = mission.ads_count.unwrap_or(-1);
    (usize::try_from(counted) != Ok(ads)).then(|| {
        let text = format!("{} counted {counted} ads, the library has {ads}", mission.id);
        Finding::new(Code::Wrong, name, text)
    })
}

/// The log says of a mission that it ended once.
async fn ended_once(
    fleet: &Fleet,
    mission: &Mission,
    name: &str,
) -> anyhow::Result<Option<Finding>> {
    let filter = LogFilter {
        mission: Some(mission.id.clone()),
        events: vec![EventKind::MissionCompleted],
        limit: 10,
        ..LogFilter::default()
    };
    let ends = fleet.log(&filter).await?.len();
    let is_completed = mission.status == MissionStatus::Completed;
    Ok((ends != usize::from(is_completed)).then(|| {
        let text = format!("the log of {} says {ends} times that it was completed", mission.id);
        Finding::new(if ends > 1 { Code::Twice } else { Code::Lost }, name, text)
    }))
}

/// An ad of the library that a mission was to find.
struct Due {
    ad: Value,
    /// Whether such a mission has ended: until then it need not be there.
    is_due: bool,
}

/// The table of ads against the library.
fn stored_ads(rows: Vec<Vec<Value>>, mut open: BTreeMap<String, Due>) -> Vec<Finding> {
    let (mut seen, mut twice, mut wrong) = (BTreeSet::new(), Vec::new(), Vec::new());
    for row in rows {
        let mut cells = row.into_iter();
        let id = cells.next().and_then(|id| id.as_str().map(str::to_owned)).unwrap_or_default();
        let data = cells.next().unwrap_or_default();
        if !seen.insert(id.clone()) {
            twice.push(id);
            continue;
        }
        if open.remove(&id).map(|due| due.ad) != Some(data) {
            wrong.push(id);
        }
    }
    // What is there otherwise than it should be is not lost as well.
    let lost: Vec<String> =
        open.into_iter().filter(|(_, due)| due.is_due).map(|(id, _)| id).collect();
    let all = [
        (Code::Lost, lost, "that the library has are not there"),
        (Code::Twice, twice, "are there more than once"),
        (Code::Wrong, wrong, "are not as the library has them"),
    ];
    let found = all.into_iter().filter(|(_, ids, _)| !ids.is_empty());
    let found = found.map(|(code, ids, what)| {
        let named: Vec<&str> = ids.iter().take(NAMED).map(String::as_str).collect();
        Finding::new(code, "public.ads", format!("{} ads {what}: {}", ids.len(), named.join(", ")))
    });
    found.collect()
}

/// What is not free.
async fn held(fleet: &Fleet) -> anyhow::Result<Vec<Finding>> {
    let status = fleet.status().await?;
    let mut found = Vec::new();
    if status.control.mode != Mode::Off {
        let text = format!("it is in mode {} after its run", status.control.mode);
        found.push(Finding::new(Code::Held, "fleet", text));
    }
    for worker in &status.workers {
        let is_free = worker.status == WorkerStatus::Idle && worker.current_mission_id.is_none();
        if !is_free || worker.unclosed {
            let text = format!("it is {} after the end of the run", worker.status);
            found.push(Finding::new(Code::Held, worker.name.as_str(), text));
        }
    }
    for proxy in &status.proxies {
        if let Some(worker) = &proxy.in_use_by_worker_id {
            let text = format!("it is in use by {worker} after the end of the run");
            found.push(Finding::new(Code::Held, proxy.label(), text));
        }
    }
    Ok(found)
}
