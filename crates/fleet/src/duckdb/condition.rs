//! A WHERE clause of the conditions that are asked for, and no others, with its parameters.

use jiff::Timestamp;
use lavra_db::duckdb::types::Value;
use lavra_db::micros;
use serde::Serialize;

use crate::code::ErrorCode;
use crate::error::{Error, Result};
use crate::model::{Checkpoint, LogId, MediaType, MissionStatus, Waiting};
use crate::store::{Filter, LogFilter};

#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    all: Vec<String>,
    pub(super) params: Vec<Value>,
}

impl Conditions {
    /// Adds one; `?` in it is the parameter.
    pub(super) fn add(&mut self, condition: &str, param: Value) {
        self.params.push(param);
        self.all.push(condition.replace('?', &format!("${}", self.params.len())));
    }

    pub(super) fn add_if(&mut self, condition: &str, param: Option<impl Into<String>>) {
        if let Some(param) = param {
            self.add(condition, Value::Text(param.into()));
        }
    }

    pub(super) fn add_plain(&mut self, condition: &str) {
        self.all.push(condition.to_owned());
    }

    /// Adds a parameter that stands elsewhere in the statement, and says which it is.
    pub(super) fn param(&mut self, param: Value) -> String {
        self.params.push(param);
        format!("${}", self.params.len())
    }

    /// Only entries of the log that are older than this one.
    pub(super) fn add_older(&mut self, than: Option<&(Timestamp, LogId)>) {
        self.add_beyond(than, '<');
    }

    fn add_beyond(&mut self, place: Option<&(Timestamp, LogId)>, way: char) {
        let Some((time, id)) = place else { return };
        let at = self.param(Value::BigInt(micros(*time)));
        let id = self.param(Value::Text(id.0.clone()));
        self.add_plain(&format!(
            "(timestamp {way} make_timestamp({at})
              OR (timestamp = make_timestamp({at}) AND id {way} {id}))"
        ));
    }

    pub(super) fn sql(&self) -> String {
        if self.all.is_empty() { "true".to_owned() } else { self.all.join(" AND ") }
    }

    pub(super) fn of_missions(filter: &Filter) -> Result<Self> {
        let mut conditions = Self::default();
        match filter.ids.as_slice() {
            [] => {}
            [id] => conditions.add("id = ?", Value::Text(id.0.clone())),
            ids => {
                conditions.add("id IN (SELECT unnest(?::JSON::VARCHAR[]))", list(ids)?);
            }
        }
        conditions.add_if("status = ?", filter.status.map(MissionStatus::as_str));
        match filter.in_bank {
            Some(true) => conditions.add_plain("status = 'queued' AND queued_at IS NULL"),
            Some(false) => conditions.add_plain("(status <> 'queued' OR queued_at IS NOT NULL)"),
            None => {}
        }
        conditions.add_if("checkpoint = ?", filter.checkpoint.map(Checkpoint::as_str));
        conditions.add_if("error_code = ?", filter.error_code.map(ErrorCode::as_str));
        conditions.add_if("media_type = ?", filter.media_type.map(MediaType::as_str));
        conditions.add_if("list_contains(languages, ?)", filter.language.clone());
        conditions.add_if("worker_id = ?", filter.worker.clone().map(|worker| worker.0));
        conditions.add_if("date_start >= ?::DATE", filter.from.map(|day| day.to_string()));
        conditions.add_if("date_end <= ?::DATE", filter.to.map(|day| day.to_string()));
        conditions.add_if("waiting = ?", filter.waiting.map(Waiting::as_str));
        conditions.add_if(
            "(starts_with(id, ?) OR starts_with(lower(error_code), lower(?))
              OR contains(lower(error_message), lower(?)))",
            filter.search.clone(),
        );
        Ok(conditions)
    }

    pub(super) fn of_log(filter: &LogFilter) -> Result<Self> {
        let mut conditions = Self::default();
        conditions.add_if("mission_id = ?", filter.mission.clone().map(|mission| mission.0));
        if filter.without_mission {
            conditions.add_plain("mission_id IS NULL");
        }
        if !filter.events.is_empty() {
            let events = list(&filter.events)?;
            conditions.add("event IN (SELECT unnest(?::JSON::VARCHAR[]))", events);
        }
        conditions
            .add_if("(details->>'worker_id') = ?", filter.worker.clone().map(|worker| worker.0));
        conditions.add_if("(details->>'proxy_name') = ?", filter.proxy.clone());
        conditions.add_if("session_id = ?", filter.session.clone().map(|session| session.0));
        conditions.add_if("(details->>'error_code') = ?", filter.error_code.map(ErrorCode::as_str));
        if let Some(since) = filter.since {
            conditions.add("timestamp >= make_timestamp(?)", Value::BigInt(micros(since)));
        }
        if let Some(until) = filter.until {
            conditions.add("timestamp < make_timestamp(?)", Value::BigInt(micros(until)));
        }
        conditions.add_older(filter.before.as_ref());
        conditions.add_beyond(filter.after.as_ref(), '>');
        Ok(conditions)
    }
}

/// A list as the JSON text that a statement takes.
fn list<T: Serialize>(words: &[T]) -> Result<Value> {
    let text = serde_json::to_string(words);
    text.map(Value::Text).map_err(|error| Error::Unreadable(error.to_string()))
}
