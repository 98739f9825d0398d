//! Sources: what is known of an API, as data.
//!
//! A source is a TOML file; `pncp` is built in. It is read and checked once, with the line of each
//! mistake, and past that point cannot be wrong.

mod answer;
mod check;
mod file;

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use url::Url;

use crate::month::Month;

pub use answer::{Means, Rule};
pub use check::{Mistake, Mistakes};

const PNCP: &str = include_str!("../../sources/pncp.toml");

#[derive(Clone, Debug)]
pub struct Source {
    pub name: String,
    pub title: String,
    pub base_url: Url,
    /// In whose days a month is over.
    pub time_zone: TimeZone,
    /// For how many days after its end a month may still change.
    pub grace_days: i64,
    pub limits: Limits,
    pub request: Request,
    pub response: Response,
    pub filters: Filters,
    pub rules: Vec<Rule>,
    pub endpoints: Vec<Endpoint>,
    /// The text that it was read from.
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// The most requests at once.
    pub in_flight: usize,
    pub timeout: std::time::Duration,
    pub connect: std::time::Duration,
    pub max_pages: i64,
    pub max_body: usize,
}

/// What requests of all endpoints share.
#[derive(Clone, Debug)]
pub struct Request {
    pub date_format: String,
    pub page: String,
    pub page_size: Option<String>,
    pub headers: BTreeMap<String, Header>,
}

/// A header's value: as it stands, or from a variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    Plain(String),
    Variable(String),
}

/// Where the parts of an answer stand, as JSON pointers.
#[derive(Clone, Debug)]
pub struct Response {
    pub records: Pointer,
    pub total: Pointer,
    pub pages: Option<Pointer>,
}

/// Under which names a worker sends what it is asked to look for. An extraction, which wants all there
/// is, has no use for them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filters {
    pub media_type: Option<String>,
    pub languages: Option<String>,
    /// What stands between several languages.
    pub separator: Option<String>,
    pub sort_by: Option<String>,
    /// Those that the API does not have, and that may be left out.
    pub ignore: Vec<Filter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    MediaType,
    Languages,
    SortBy,
}

/// A JSON pointer, as its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(pub Vec<String>);

#[derive(Clone, Debug)]
pub struct Endpoint {
    pub name: String,
    pub path: String,
    pub period: Period,
    pub first_month: Month,
    pub page_size: i64,
    /// The page sizes that the API takes.
    pub page_size_range: (i64, i64),
    /// Fewer at once than the source allows.
    pub in_flight: Option<usize>,
    /// Why it is only read when it is named.
    pub opt_in: Option<String>,
    pub query: BTreeMap<String, String>,
    pub fan_out: Option<FanOut>,
    /// Where pages are counted over lists within the records.
    pub count: Option<Pointer>,
    /// What names a record.
    pub key: Vec<Pointer>,
    /// What of a record has a column of its own in the endpoint's view and exports.
    pub columns: Vec<Column>,
    pub rules: Vec<Rule>,
}

/// A part of a record, as a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub at: Pointer,
    pub kind: Kind,
}

/// What a column holds. A value that is something else is NULL there; the record has it still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Text,
    Integer,
    /// With four decimals.
    Decimal,
    Double,
    Boolean,
    Date,
    /// Without a time zone.
    Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Period {
    /// A month, between two dates.
    Month { from: String, to: String, end: End },
    /// A year, by its number.
    Year { parameter: String },
    /// What stands today, up to a date ahead.
    Snapshot { to: String, horizon_days: i64 },
}

/// Whether the last day that is asked for is part of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Inclusive,
    Exclusive,
}

/// A parameter that must have a value, with all of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOut {
    pub parameter: String,
    pub label: String,
    pub values: Vec<String>,
}

/// An endpoint with a value of its fan-out: what the control table calls an endpoint.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    pub endpoint: &'a Endpoint,
    pub value: Option<&'a str>,
}

impl Series<'_> {
    /// `contratacoes_publicacao_modalidade_6`
    pub fn name(&self) -> String {
        match (&self.endpoint.fan_out, self.value) {
            (Some(fan_out), Some(value)) => {
                format!("{}_{}_{value}", self.endpoint.name, fan_out.label)
            }
            _ => self.endpoint.name.clone(),
        }
    }
}

impl Source {
    /// Reads a source from its text.
    pub fn parse(text: &str) -> Result<Self, Mistakes> {
        check::source(text)
    }

    /// A source that comes with the program.
    pub fn built_in(name: &str) -> Option<Result<Self, Mistakes>> {
        (name == "pncp").then(|| Self::parse(PNCP))
    }

    pub fn built_in_names() -> &'static [&'static str] {
        &["pncp"]
    }

    /// The endpoint and value that a name of the control table stands for.
    pub fn series(&self, name: &str) -> Option<Series<'_>> {
        self.endpoints.iter().find_map(|endpoint| endpoint.all_series().find(|s| s.name() == name))
    }
}

impl Endpoint {
    pub fn all_series(&self) -> impl Iterator<Item = Series<'_>> {
        let values: Vec<Option<&str>> = match &self.fan_out {
            Some(fan_out) => fan_out.values.iter().map(|value| Some(value.as_str())).collect(),
            None => vec![None],
        };
        values.into_iter().map(|value| Series { endpoint: self, value })
    }

    /// The last day of the task that begins on `first`.
    pub fn last_day(&self, first: Date) -> Date {
        match self.period {
            Period::Month { .. } | Period::Snapshot { .. } => first.last_of_month(),
            Period::Year { .. } => first.last_of_year(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<(usize, String)> {
        let Mistakes(all) = Source::parse(text).unwrap_err();
        all.into_iter().map(|mistake| (mistake.line, mistake.text)).collect()
    }

    const SMALL: &str = r#"name = "shop"
base_url = "http://127.0.0.1:1/api"
[request]
from = "since"
to = "until"
page = "page"
[response]
records = "/items"
total = "/total"
[[endpoint]]
name = "orders"
path = "/orders"
first_month = "2024-01"
page_size = 100
"#;

    #[test]
    fn the_source_that_is_built_in_has_every_endpoint_that_lists() {
        let pncp = Source::built_in("pncp").unwrap().unwrap();
        assert_eq!(pncp.endpoints.len(), 11);
        let all: Vec<String> =
            pncp.endpoints.iter().flat_map(Endpoint::all_series).map(|s| s.name()).collect();
        assert!(all.contains(&"contratacoes_publicacao_modalidade_6".to_owned()));
        assert!(all.contains(&"contratos_publicacao".to_owned()));
        let usual = pncp.endpoints.iter().filter(|e| e.opt_in.is_none());
        assert_eq!(usual.flat_map(Endpoint::all_series).count(), 32);
        assert_eq!(
            pncp.series("contratacoes_atualizacao_modalidade_14").unwrap().value,
            Some("14")
        );
        assert!(pncp.series("contratacoes_atualizacao").is_none());
    }

    #[test]
    fn a_small_source_has_what_is_usual() {
        let shop = Source::parse(SMALL).unwrap();
        assert_eq!((shop.title.as_str(), shop.limits.in_flight), ("shop", 4));
        assert_eq!(shop.request.date_format, "%Y-%m-%d");
        assert_eq!(shop.response.records, Pointer(vec!["items".into()]));
        let end = End::Inclusive;
        let (from, to) = ("since".to_owned(), "until".to_owned());
        assert_eq!(shop.endpoints[0].period, Period::Month { from, to, end });
    }

    #[test]
    fn each_mistake_is_told_with_its_line() {
        let text = SMALL
            .replace("\"shop\"", "\"Shop 1\"")
            .replace("http://127", "ftp://127")
            .replace("\"/items\"", "\"items\"")
            .replace("\"2024-01\"", "\"01/2024\"")
            .replace("page_size = 100", "page_size = 600\npage_size_range = [10, 500]");
        let found = mistakes(&text);
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 8, 13, 14]);
        assert!(found[0].1.contains("cannot name a source"), "{found:?}");
        assert_eq!(found[4].1, "page_size 600 is outside of 10 to 500");
    }

    #[test]
    fn of_the_environment_only_what_is_for_sources_is_sent() {
        let with = |value: &str| {
            SMALL.replace("[response]", &format!("headers.x = \"{value}\"\n[response]"))
        };
        let source = Source::parse(&with("env:LAVRA_SOURCE_KEY")).unwrap();
        let header = &source.request.headers["x"];
        assert_eq!(*header, Header::Variable("LAVRA_SOURCE_KEY".into()));
        for other in ["LAVRA_SECRET_KEY", "HOME", ""] {
            let found = mistakes(&with(&format!("env:{other}")));
            assert!(found[0].1.contains("LAVRA_SOURCE_"), "{found:?}");
        }
    }

    #[test]
    fn a_typo_is_told_with_its_line_and_what_was_possible() {
        let found = mistakes(&SMALL.replace("page_size =", "pagesize ="));
        assert_eq!(found[0].0, 14);
        assert!(found[0].1.contains("pagesize") && found[0].1.contains("page_size"), "{found:?}");
        let found = mistakes(&SMALL.replace("[request]", "[request"));
        assert_eq!(found[0].0, 3, "{found:?}");
        let found = mistakes(&SMALL.replace("to = \"until\"\n", ""));
        assert_eq!(found, [(10, "to is missing: the name of its parameter".into())]);
    }

    /// What is possible in each table is what its error says of a key that is not.
    #[test]
    fn every_key_is_documented() {
        let docs = include_str!("../../../../docs/sources.md");
        let tables = [
            ("[request]", "nonsense = 1\n[request]"),
            ("[request]", "[limits]\nnonsense = 1\n[request]"),
            ("[request]", "[filters]\nnonsense = 1\n[request]"),
            ("[request]\n", "[request]\nnonsense = 1\n"),
            ("[response]\n", "[response]\nnonsense = 1\n"),
            ("[[endpoint]]\n", "[[endpoint]]\nnonsense = 1\n"),
            ("[[endpoint]]\n", "[[endpoint]]\nfan_out = { nonsense = 1 }\n"),
            ("[[endpoint]]\n", "[[answer]]\nnonsense = 1\n[[endpoint]]\n"),
            ("[[endpoint]]\n", "[columns]\nx = [{ nonsense = 1 }]\n[[endpoint]]\n"),
        ];
        let mut seen = 0;
        for (place, with) in tables {
            let found = mistakes(&SMALL.replacen(place, with, 1));
            let (_, known) = found[0].1.split_once("expected").unwrap();
            for key in known.split('`').skip(1).step_by(2) {
                assert!(docs.contains(&format!("`{key}`")), "docs/sources.md has no `{key}`");
                seen += 1;
            }
        }
        assert!(seen > 40, "{seen}");
    }

    #[test]
    fn keys_that_mean_nothing_here_and_doubled_names_are_mistakes() {
        let text = format!(
            "{SMALL}horizon_days = 3\n[[endpoint]]\nname = \"orders\"\npath = \"/o\"\n\
             first_month = \"2024-01\"\npage_size = 1\nperiod = \"year\"\n\
             fan_out = {{ parameter = \"x\", label = \"x\", values = [1, \"a b\", 1] }}\n"
        );
        let texts: Vec<String> = mistakes(&text).into_iter().map(|(_, text)| text).collect();
        assert_eq!(
            texts,
            [
                "horizon_days is for period = \"snapshot\" alone",
                "there are two endpoints \"orders\"",
                "year is missing: the name of its parameter",
                "a value of a fan-out is part of a name: \"a b\" cannot be",
                "the value 1 stands twice",
            ]
        );
    }

    /// A view takes the tasks of a fan-out by how their names begin.
    #[test]
    fn an_endpoint_that_is_named_like_a_part_of_another_is_a_mistake() {
        let fan_out = |label: &str| {
            format!("fan_out = {{ parameter = \"x\", label = \"{label}\", values = [1] }}\n")
        };
        let other = |name: &str| {
            SMALL
                .split_once("[[endpoint]]")
                .unwrap()
                .1
                .replace("\"orders\"", &format!("\"{name}\""))
        };
        for (name, more) in [
            ("orders_kind_1", String::new()),
            ("orders_kind_other", String::new()),
            ("orders_kind", fan_out("of")),
        ] {
            let text = format!("{SMALL}{}[[endpoint]]{}{more}", fan_out("kind"), other(name));
            let found = mistakes(&text);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, 17, "{found:?}");
            let expected = format!(
                "{name:?} cannot name an endpoint: what begins with \"orders_kind_\" is of the \
                 fan-out of \"orders\""
            );
            assert_eq!(found[0].1, expected);
        }
        for name in ["orders_kind", "orders_kinds_1", "orders_old"] {
            let text = format!("{SMALL}{}[[endpoint]]{}", fan_out("kind"), other(name));
            assert!(Source::parse(&text).is_ok(), "{name}");
        }
    }
}
