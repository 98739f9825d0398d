//! Schedules: a cron line, a type, a payload. Due times that were missed are made up for once.

use std::str::FromStr;

use croner::Cron;
use croner::errors::CronError;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::create::NewTask;
use crate::error::{Error, Result};
use crate::service::{Created, Tasks};
use crate::store::Schedule;

/// The first time after `after`, in UTC, at which the line falls due.
pub fn next_time(line: &str, after: Timestamp) -> Result<Timestamp> {
    let never = || Error::Invalid(format!("{line:?} does not fall due after {after}"));
    next_time_if_any(line, after)?.ok_or_else(never)
}

/// The same of a line that may be over: one can name a year.
fn next_time_if_any(line: &str, after: Timestamp) -> Result<Option<Timestamp>> {
    let wrong = |reason: String| Error::Invalid(format!("{line:?} is not a cron line: {reason}"));
    let cron = Cron::from_str(line).map_err(|error| wrong(error.to_string()))?;
    let start = croner_time(after).ok_or_else(|| wrong("the time is out of range".into()))?;
    let found = match cron.find_next_occurrence(&start, false) {
        Ok(found) => found,
        Err(CronError::TimeSearchLimitExceeded) => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let found = Timestamp::from_second(found.timestamp());
    found.map(Some).map_err(|error| wrong(error.to_string()))
}

fn croner_time(time: Timestamp) -> Option<chrono::DateTime<chrono::Utc>> {
    chrono::DateTime::from_timestamp(time.as_second(), 0)
}

impl Tasks {
    /// Stores a schedule under its name; its first run is the next due time from now.
    pub async fn schedule(
        &self,
        name: &str,
        kind: &str,
        cron: &str,
        payload: Value,
    ) -> Result<Schedule> {
        self.schedule_as(name, kind, cron, payload, true).await
    }

    /// The same of one that need not fire.
    pub async fn schedule_as(
        &self,
        name: &str,
        kind: &str,
        cron: &str,
        payload: Value,
        enabled: bool,
    ) -> Result<Schedule> {
        crate::create::check_kind(name)?;
        self.policy_for_new(kind).await?;
        crate::create::check_text("payload", &payload)?;
        let schedule = Schedule {
            name: name.to_owned(),
            kind: kind.to_owned(),
            cron: cron.to_owned(),
            payload,
            enabled,
            next_at: next_time(cron, self.now())?,
            last_task: None,
        };
        self.store().put_schedule(schedule.clone()).await?;
        Ok(schedule)
    }

    /// Lets a schedule fire from its next due time on, or keeps it from firing.
    pub async fn enable_schedule(&self, name: &str, enabled: bool) -> Result<()> {
        let schedule = self.schedule_of(name).await?;
        let next_at = match next_time(&schedule.cron, self.now()) {
            // What never falls due can still be kept from firing.
            Err(_) if !enabled => schedule.next_at,
            next_at => next_at?,
        };
        if self.store().enable_schedule(schedule.name, enabled, next_at).await? {
            return Ok(());
        }
        Err(Error::NoSuchSchedule(name.to_owned()))
    }

    /// Makes the task of a schedule now, whether it may fire or not; its due times stay.
    pub async fn run_schedule(&self, name: &str) -> Result<Created> {
        let schedule = self.schedule_of(name).await?;
        self.create(of_schedule(schedule)).await
    }

    pub async fn schedule_of(&self, name: &str) -> Result<Schedule> {
        let all = self.store().schedules().await?;
        let found = all.into_iter().find(|schedule| schedule.name == name);
        found.ok_or_else(|| Error::NoSuchSchedule(name.to_owned()))
    }

    /// Stores a schedule as [`Tasks::schedule`] does, but leaves one of that name alone: for those that
    /// come with the program.
    pub async fn schedule_once(&self, name: &str, kind: &str, cron: &str) -> Result<()> {
        if self.store().schedules().await?.iter().all(|schedule| schedule.name != name) {
            self.schedule(name, kind, cron, json!({})).await?;
        }
        Ok(())
    }
}

fn of_schedule(schedule: Schedule) -> NewTask {
    NewTask {
        kind: schedule.kind,
        payload: schedule.payload,
        metadata: Some(json!({ "schedule": schedule.name })),
        ..NewTask::default()
    }
}

/// One that cannot fire keeps no other from it.
pub(crate) async fn fire_due(tasks: &Tasks) -> Result<()> {
    let now = tasks.now();
    let due = tasks.store().schedules().await?.into_iter();
    for schedule in due.filter(|schedule| schedule.enabled && schedule.next_at <= now) {
        let name = schedule.name.clone();
        match fire(tasks, schedule, now).await {
            Ok(()) => {}
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => tracing::warn!(schedule = name, %error, "a schedule cannot fire"),
        }
    }
    Ok(())
}

async fn fire(tasks: &Tasks, schedule: Schedule, now: Timestamp) -> Result<()> {
    let to = next_time_if_any(&schedule.cron, now)?;
    let (name, from) = (schedule.name.clone(), schedule.next_at);
    let row = tasks.row(of_schedule(schedule))?;
    if tasks.store().fire(name.clone(), from, to, row, tasks.announces()).await? {
        let next = to.map_or_else(|| "never".to_owned(), |to| to.to_string());
        tracing::info!(schedule = name, next, "a scheduled task was made");
        tasks.ring();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cron_line_falls_due_at_its_next_time_in_utc() {
        let after: Timestamp = "2026-11-15T20:30:00Z".parse().unwrap();
        let next = next_time("17 3 * * *", after).unwrap();
        assert_eq!(next.to_string(), "2026-11-16T03:17:00Z");
        assert_eq!(next_time("17 3 * * *", next).unwrap().to_string(), "2026-11-17T03:17:00Z");
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        let error = next_time("61 * * * *", Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains("not a cron line"), "{error}");
    }

    #[test]
    fn a_line_whose_year_is_over_has_no_next_time() {
        let line = "0 0 0 1 1 * 2027";
        let due: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(next_time(line, Timestamp::UNIX_EPOCH).unwrap(), due);
        assert_eq!(next_time_if_any(line, due).unwrap(), None);
        let error = next_time(line, due).unwrap_err();
        assert!(error.to_string().contains("does not fall due after 2027-01-01"), "{error}");
    }
}
