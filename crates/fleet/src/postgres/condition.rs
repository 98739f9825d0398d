//! The conditions of a filter as SQL, with their parameters: only those that were asked for, so
//! that each has the plan it deserves.

use lavra_db::Param;
use lavra_db::tokio_postgres::types::{ToSql, Type};

use crate::store::{Filter, LogFilter};

#[derive(Default)]
pub(super) struct Conditions {
    conditions: Vec<String>,
    values: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Conditions {
    /// A condition without a parameter.
    pub(super) fn plain(&mut self, condition: &str) {
        self.conditions.push(condition.to_owned());
    }

    /// A condition with the parameter at `{}`.
    fn with(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static, kind: Type) {
        let name = self.bind(value, kind);
        self.conditions.push(condition.replace("{}", &name));
    }

    /// A parameter; returns its name.
    pub(super) fn bind(&mut self, value: impl ToSql + Sync + Send + 'static, kind: Type) -> String {
        self.values.push((Box::new(value), kind));
        format!("${}", self.values.len())
    }

    /// All of them together.
    pub(super) fn sql(&self) -> String {
        match self.conditions.as_slice() {
            [] => "true".to_owned(),
            all => all.join(" AND "),
        }
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        self.values.iter().map(|(value, kind)| (&**value as _, kind.clone())).collect()
    }

    /// Of missions `m`.
    pub(super) fn of_missions(filter: &Filter) -> Self {
        let Filter {
            ids,
            status,
            in_bank,
            checkpoint,
            error_code,
            media_type,
            language,
            worker,
            from,
            to,
            waiting,
            search,
        } = filter;
        let mut all = Self::default();
        if !ids.is_empty() {
            let ids: Vec<String> = ids.iter().map(|id| id.0.clone()).collect();
            all.with("m.id = ANY ({})", ids, Type::TEXT_ARRAY);
        }
        if let Some(status) = status {
            all.with("m.status = {}::public.mission_status", status.as_str(), Type::TEXT);
        }
        match in_bank {
            Some(true) => all.plain("m.status = 'queued' AND m.queued_at IS NULL"),
            Some(false) => all.plain("NOT (m.status = 'queued' AND m.queued_at IS NULL)"),
            None => {}
        }
        if let Some(checkpoint) = checkpoint {
            all.with("m.checkpoint = {}::public.checkpoint_type", checkpoint.as_str(), Type::TEXT);
        }
        if let Some(code) = error_code {
            all.with("m.error_code = {}", code.as_str(), Type::TEXT);
        }
        if let Some(media_type) = media_type {
            all.with("m.media_type = {}", media_type.as_str(), Type::TEXT);
        }
        if let Some(language) = language {
            all.with("{} = ANY (m.languages)", language.clone(), Type::TEXT);
        }
        if let Some(worker) = worker {
            all.with("m.worker_id = {}", worker.0.clone(), Type::TEXT);
        }
        if let Some(day) = from {
            all.with("m.date_start >= {}", *day, Type::DATE);
        }
        if let Some(day) = to {
            all.with("m.date_end <= {}", *day, Type::DATE);
        }
        if let Some(waiting) = waiting {
            all.with("m.waiting = {}", waiting.as_str(), Type::TEXT);
        }
        if let Some(text) = search {
            let condition = "(starts_with(m.id, {}) OR starts_with(lower(m.error_code), lower({}))
                              OR strpos(lower(m.error_message), lower({})) > 0)";
            all.with(condition, text.clone(), Type::TEXT);
        }
        all
    }

    /// Of log entries `l`, their kinds apart.
    pub(super) fn of_entries(filter: &LogFilter) -> Self {
        let LogFilter {
            mission,
            without_mission,
            events: _,
            worker,
            proxy,
            session,
            error_code,
            since,
            until,
            before,
            after,
            oldest_first: _,
            limit: _,
        } = filter;
        let mut all = Self::default();
        if let Some(mission) = mission {
            all.with("l.mission_id = {}", mission.0.clone(), Type::TEXT);
        }
        if *without_mission {
            all.plain("l.mission_id IS NULL");
        }
        if let Some(worker) = worker {
            all.with("l.details->>'worker_id' = {}", worker.0.clone(), Type::TEXT);
        }
        if let Some(proxy) = proxy {
            all.with("l.details->>'proxy_name' = {}", proxy.clone(), Type::TEXT);
        }
        if let Some(session) = session {
            all.with("l.session_id = {}", session.0.clone(), Type::TEXT);
        }
        if let Some(code) = error_code {
            all.with("l.details->>'error_code' = {}", code.as_str(), Type::TEXT);
        }
        if let Some(time) = since {
            all.with("l.timestamp >= {}", *time, Type::TIMESTAMPTZ);
        }
        if let Some(time) = until {
            all.with("l.timestamp < {}", *time, Type::TIMESTAMPTZ);
        }
        if let Some((time, id)) = before {
            let time = all.bind(*time, Type::TIMESTAMPTZ);
            all.with(&format!("(l.timestamp, l.id) < ({time}, {{}})"), id.0.clone(), Type::TEXT);
        }
        if let Some((time, id)) = after {
            let time = all.bind(*time, Type::TIMESTAMPTZ);
            all.with(&format!("(l.timestamp, l.id) > ({time}, {{}})"), id.0.clone(), Type::TEXT);
        }
        all
    }
}
