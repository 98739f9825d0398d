//! A source as it stands in its file. Each value that can be wrong knows where it stands.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::answer::{Means, Which};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) title: String,
    pub(super) base_url: Spanned<String>,
    pub(super) time_zone: Option<Spanned<String>>,
    pub(super) grace_days: Option<Spanned<i64>>,
    #[serde(default)]
    pub(super) limits: Limits,
    pub(super) request: Request,
    pub(super) response: Response,
    #[serde(default)]
    pub(super) filters: super::Filters,
    #[serde(default)]
    pub(super) answer: Vec<Answer>,
    #[serde(default)]
    pub(super) columns: BTreeMap<String, Vec<Column>>,
    #[serde(default)]
    pub(super) endpoint: Vec<Endpoint>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) name: Spanned<String>,
    pub(super) at: Option<Spanned<String>>,
    #[serde(default, rename = "type")]
    pub(super) kind: super::Kind,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) in_flight: Option<Spanned<i64>>,
    pub(super) timeout_seconds: Option<Spanned<i64>>,
    pub(super) connect_seconds: Option<Spanned<i64>>,
    pub(super) max_pages: Option<Spanned<i64>>,
    pub(super) max_body_mb: Option<Spanned<i64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) date_format: Option<Spanned<String>>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) page: String,
    pub(super) page_size: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Response {
    pub(super) records: Spanned<String>,
    pub(super) total: Spanned<String>,
    pub(super) pages: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) status: Spanned<i64>,
    pub(super) page: Option<Which>,
    pub(super) contains: Option<Spanned<String>>,
    pub(super) body: Option<Body>,
    pub(super) means: Means,
    #[serde(default)]
    pub(super) after: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Body {
    None,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Endpoint {
    pub(super) name: Spanned<String>,
    pub(super) path: Spanned<String>,
    pub(super) period: Option<Spanned<Period>>,
    pub(super) first_month: Spanned<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) end: Option<Spanned<End>>,
    pub(super) year: Option<Spanned<String>>,
    pub(super) horizon_days: Option<Spanned<i64>>,
    pub(super) page_size: Spanned<i64>,
    pub(super) page_size_range: Option<Spanned<(i64, i64)>>,
    pub(super) in_flight: Option<Spanned<i64>>,
    pub(super) opt_in: Option<String>,
    #[serde(default)]
    pub(super) query: BTreeMap<String, Scalar>,
    pub(super) fan_out: Option<FanOut>,
    pub(super) count: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) key: Vec<Spanned<String>>,
    pub(super) columns: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) answer: Vec<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Period {
    Month,
    Year,
    Snapshot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Inclusive,
    Exclusive,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FanOut {
    pub(super) parameter: String,
    pub(super) label: Spanned<String>,
    pub(super) values: Vec<Spanned<Scalar>>,
}

/// A value of a query, as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Scalar {
    Whole(i64),
    Switch(bool),
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Switch(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}
