//! Phase 1: which tasks there should be.

use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};

use crate::error::{Error, Result};
use crate::model::ExtractionId;
use crate::month::Month;
use crate::source::{Endpoint, Period, Source};
use crate::store::{Planned, Scope};

/// What someone wants extracted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    pub from: Month,
    pub to: Month,
    /// Names of endpoints, with or without the value of their fan-out; none is all usual ones.
    #[serde(default)]
    pub endpoints: Vec<String>,
}

/// The tasks, and the part of the table that they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub tasks: Vec<Planned>,
    pub scope: Scope,
}

/// The tasks that `wanted` means. A month that has not begun yet has no task.
pub fn plan(source: &Source, wanted: &Wanted, now: Timestamp) -> Result<Plan> {
    let today = today(source, now);
    let (from, to) = (wanted.from, wanted.to);
    if from > to {
        return Err(Error::Invalid(format!(
            "from {from} to {to} is no time: it ends before it begins"
        )));
    }
    if from > Month::of(today) {
        return Err(Error::Invalid(format!("{from} has not begun yet: today is {today}")));
    }
    let chosen = choose(source, &wanted.endpoints)?;
    let first = chosen.iter().map(|(endpoint, _)| endpoint.first_month).min();
    if let Some(first) = first.filter(|first| to < *first) {
        return Err(Error::Invalid(format!("there is nothing before {first}")));
    }
    let mut tasks = Vec::new();
    for (endpoint, name) in &chosen {
        for data_date in dates(endpoint, from, to.min(Month::of(today)), today) {
            let task_id = ExtractionId::new(name, data_date);
            tasks.push(Planned { task_id, endpoint_name: name.clone(), data_date });
        }
    }
    tasks.sort_by(|a, b| (a.data_date, &a.endpoint_name).cmp(&(b.data_date, &b.endpoint_name)));
    let scope = Scope {
        endpoints: chosen.into_iter().map(|(_, name)| name).collect(),
        from: tasks.first().map_or(from.first(), |task| task.data_date),
        to: to.last(),
    };
    Ok(Plan { tasks, scope })
}

pub fn today(source: &Source, now: Timestamp) -> Date {
    now.to_zoned(source.time_zone.clone()).date()
}

/// Whether the days until `last` are over, and what belongs to them is settled.
pub fn is_over(last: Date, grace_days: i64, zone: &TimeZone, now: Timestamp) -> bool {
    let settled = jiff::Span::new().try_days(grace_days).and_then(|days| last.checked_add(days));
    settled.is_ok_and(|settled| now.to_zoned(zone.clone()).date() > settled)
}

/// The first days of an endpoint's tasks.
fn dates(endpoint: &Endpoint, from: Month, to: Month, today: Date) -> Vec<Date> {
    let from = from.max(endpoint.first_month);
    match endpoint.period {
        Period::Month { .. } => from.through(to).map(Month::first).collect(),
        Period::Year { .. } => {
            let mut years: Vec<Date> =
                from.through(to).map(|month| month.first().first_of_year()).collect();
            years.dedup();
            years
        }
        Period::Snapshot { .. } => {
            let this = Month::of(today);
            (from <= this && this <= to).then(|| this.first()).into_iter().collect()
        }
    }
}

/// The names that the control table has for these; none stay none.
pub fn names(source: &Source, endpoints: &[String]) -> Result<Vec<String>> {
    if endpoints.is_empty() {
        return Ok(Vec::new());
    }
    Ok(choose(source, endpoints)?.into_iter().map(|(_, name)| name).collect())
}

fn choose<'a>(source: &'a Source, names: &[String]) -> Result<Vec<(&'a Endpoint, String)>> {
    let all = |endpoint: &'a Endpoint| endpoint.all_series().map(move |s| (endpoint, s.name()));
    if names.is_empty() {
        let usual = source.endpoints.iter().filter(|endpoint| endpoint.opt_in.is_none());
        return Ok(usual.flat_map(all).collect());
    }
    let mut chosen: Vec<(&Endpoint, String)> = Vec::new();
    for name in names {
        let found: Vec<_> = match source.endpoints.iter().find(|e| e.name == *name) {
            Some(endpoint) => all(endpoint).collect(),
            None => source
                .series(name)
                .map(|series| (series.endpoint, name.clone()))
                .into_iter()
                .collect(),
        };
        if found.is_empty() {
            return Err(unknown(source, name));
        }
        chosen.extend(found);
    }
    chosen.sort_by(|a, b| a.1.cmp(&b.1));
    chosen.dedup_by(|a, b| a.1 == b.1);
    Ok(chosen)
}

fn unknown(source: &Source, name: &str) -> Error {
    let endpoint = source.endpoints.iter().find(|endpoint| endpoint.name == name);
    match endpoint.and_then(|endpoint| endpoint.fan_out.as_ref()) {
        Some(fan_out) => {
            Error::Invalid(format!("{name} needs values for {}: none are known", fan_out.parameter))
        }
        None => {
            let all: Vec<&str> = source.endpoints.iter().map(|e| e.name.as_str()).collect();
            Error::Invalid(format!(
                "{} has no endpoint {name:?}; there are {}",
                source.name,
                all.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(from: &str, to: &str, endpoints: &[&str]) -> Wanted {
        let endpoints = endpoints.iter().map(|name| (*name).to_owned()).collect();
        Wanted { from: from.parse().unwrap(), to: to.parse().unwrap(), endpoints }
    }

    fn planned(wanted: &Wanted) -> Result<Vec<String>, String> {
        let source = Source::built_in("pncp").unwrap().unwrap();
        // Still October in São Paulo.
        let now = "2026-11-01T02:00:00Z".parse().unwrap();
        let plan = plan(&source, wanted, now).map_err(|error| error.to_string())?;
        Ok(plan.tasks.into_iter().map(|task| task.task_id.0).collect())
    }

    #[test]
    fn a_month_has_a_task_for_each_usual_endpoint_and_value() {
        assert_eq!(planned(&wanted("2026-01", "2026-01", &[])).unwrap().len(), 32);
        let early = planned(&wanted("2021-08", "2021-09", &[])).unwrap();
        assert_eq!(early.len(), 28 + 30, "contratos begin in September 2021, others later");
        let one = planned(&wanted("2024-01-15", "2024-02", &["contratos_publicacao"])).unwrap();
        assert_eq!(one, ["contratos_publicacao_2024-01-01", "contratos_publicacao_2024-02-01"]);
        let value = "contratacoes_publicacao_modalidade_6";
        assert_eq!(planned(&wanted("2024-01", "2024-01", &[value, value])).unwrap().len(), 1);
        let all = planned(&wanted("2024-01", "2024-01", &["contratacoes_publicacao"])).unwrap();
        assert_eq!(all.len(), 14);
    }

    #[test]
    fn months_that_have_not_begun_have_no_task() {
        let contratos = ["contratos_publicacao"];
        assert_eq!(planned(&wanted("2026-10", "2027-03", &contratos)).unwrap().len(), 1);
        let future = planned(&wanted("2026-11", "2027-03", &contratos)).unwrap_err();
        assert_eq!(future, "2026-11 has not begun yet: today is 2026-10-31");
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let reversed = planned(&wanted("2024-03", "2024-01", &[])).unwrap_err();
        assert_eq!(reversed, "from 2024-03 to 2024-01 is no time: it ends before it begins");
        let early = planned(&wanted("2020-01", "2020-12", &["contratos_publicacao"])).unwrap_err();
        assert_eq!(early, "there is nothing before 2021-09");
        let unknown = planned(&wanted("2024-01", "2024-01", &["contratos"])).unwrap_err();
        assert!(
            unknown
                .starts_with("pncp has no endpoint \"contratos\"; there are contratos_publicacao"),
            "{unknown}"
        );
        let values = planned(&wanted("2024-01", "2024-01", &["pca_usuario"])).unwrap_err();
        assert_eq!(values, "pca_usuario needs values for idUsuario: none are known");
    }

    #[test]
    fn a_snapshot_is_of_this_month_and_a_year_of_its_first_day() {
        let snapshot = ["contratacoes_proposta"];
        assert_eq!(
            planned(&wanted("2026-01", "2026-12", &snapshot)).unwrap(),
            ["contratacoes_proposta_2026-10-01"]
        );
        assert!(planned(&wanted("2026-01", "2026-09", &snapshot)).unwrap().is_empty());
    }

    #[test]
    fn a_month_is_over_in_the_days_of_its_source_and_after_its_grace() {
        let zone = TimeZone::get("America/Sao_Paulo").unwrap();
        let last = jiff::civil::date(2026, 10, 31);
        let at = |text: &str| is_over(last, 2, &zone, text.parse().unwrap());
        assert!(!at("2026-11-01T12:00:00Z"));
        assert!(!at("2026-11-03T02:59:00Z"), "the second of November there");
        assert!(at("2026-11-03T03:00:00Z"));
    }
}
