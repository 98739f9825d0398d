//! A source on paper: records in a list, answered page by page without sockets, with whatever
//! trouble a test wants.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use lavra_extract::client::Fetch;
use lavra_extract::reading::{Reply, Trouble};
use serde_json::json;
use url::Url;

/// What the server does instead of answering, by the number of the request from 1 on.
pub(crate) type Fault = Box<dyn Fn(u64, i64) -> Option<Result<Reply, Trouble>> + Send + Sync>;

/// What is done to the records of a day.
type Change = fn(&mut Vec<i64>);

pub(crate) struct Paper {
    state: Mutex<State>,
    fault: Fault,
}

#[derive(Default)]
struct State {
    /// By the first day that is asked for.
    records: BTreeMap<String, Vec<i64>>,
    requests: u64,
    /// How often each page was given out whole, by first day and page.
    given: BTreeMap<(String, i64), u64>,
    /// What is done to the records of a day once so many requests have come.
    changes: Vec<(u64, String, Change)>,
}

impl std::fmt::Debug for Paper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paper").finish_non_exhaustive()
    }
}

impl Paper {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { state: Mutex::default(), fault }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, day: &str, count: i64) {
        self.state().records.insert(day.into(), (0..count).collect());
    }

    pub(crate) fn change_at(&self, request: u64, day: &str, change: Change) {
        self.state().changes.push((request, day.into(), change));
    }

    pub(crate) fn records(&self, day: &str) -> Vec<i64> {
        self.state().records.get(day).cloned().unwrap_or_default()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state().requests
    }

    pub(crate) fn given(&self) -> BTreeMap<(String, i64), u64> {
        self.state().given.clone()
    }
}

pub(crate) fn reply(status: u16, body: impl Into<Bytes>) -> Reply {
    Reply { status, headers: Vec::new(), body: body.into() }
}

#[async_trait]
impl Fetch for Paper {
    async fn fetch(&self, url: &Url) -> Result<Reply, Trouble> {
        let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        let number = |name: &str| query[name].parse::<i64>().unwrap();
        let day = query.get("dataInicial").unwrap_or_else(|| &query["dataFinal"]);
        let (page, size) = (number("pagina"), number("tamanhoPagina"));
        let request = {
            let mut state = self.state();
            state.requests += 1;
            let request = state.requests;
            let due: Vec<_> = state.changes.iter().filter(|c| c.0 == request).cloned().collect();
            for (_, day, change) in due {
                change(state.records.entry(day).or_default());
            }
            request
        };
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if let Some(trouble) = (self.fault)(request, page) {
            return trouble;
        }
        let mut state = self.state();
        let records = state.records.get(day).cloned().unwrap_or_default();
        if records.is_empty() {
            return Ok(reply(204, ""));
        }
        let first = ((page - 1) * size) as usize;
        if first >= records.len() {
            return Ok(reply(400, r#"{"message":"no such page"}"#));
        }
        *state.given.entry((day.clone(), page)).or_default() += 1;
        let data: Vec<_> = records[first..records.len().min(first + size as usize)]
            .iter()
            .map(|n| json!({ "numeroControlePNCP": n }))
            .collect();
        let total = records.len();
        let mut body = json!({ "data": data, "totalRegistros": total }).to_string();
        if request.is_multiple_of(2) {
            // The order of keys is not stable.
            body = format!(r#"{{"totalRegistros":{total},"data":{}}}"#, json!(data));
        }
        Ok(reply(200, body))
    }
}
