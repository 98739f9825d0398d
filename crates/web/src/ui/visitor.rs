//! Who looks at a page, and how they would like it.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::texts::Language;
use crate::access::{Caller, Role, Who};

/// Light or dark, or as the system has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::System, Self::Light, Self::Dark].into_iter().find(|theme| theme.as_str() == text)
    }
}

/// One who looks at a page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) language: Language,
    pub(crate) theme: Theme,
    /// The address of the page, to come back to.
    pub(crate) here: String,
    /// What their forms must carry.
    pub(crate) csrf: String,
    /// The name of their key, if they came with one.
    pub(crate) name: Option<String>,
    /// May change missions and runs.
    pub(crate) may_operate: bool,
    /// May change settings, workers, proxies and writers.
    pub(crate) may_administer: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let headers = &parts.headers;
        let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let language = cookie(headers, "lavra_language").and_then(Language::parse);
        let theme = cookie(headers, "lavra_theme").and_then(Theme::parse);
        let here = parts.uri.path_and_query().map_or("/ui", |path| path.as_str());
        let visitor = Self {
            language: language.unwrap_or_else(|| Language::preferred(accepted.unwrap_or_default())),
            theme: theme.unwrap_or(Theme::System),
            here: here.to_owned(),
            csrf: String::new(),
            name: None,
            may_operate: false,
            may_administer: false,
        };
        Ok(visitor.known_as(parts.extensions.get::<Caller>()))
    }
}

impl Visitor {
    /// The same, with what the gate has found out.
    pub(crate) fn known_as(mut self, caller: Option<&Caller>) -> Self {
        let Some(caller) = caller else { return self };
        caller.csrf().clone_into(&mut self.csrf);
        self.name = match caller.who() {
            Who::Session { name, .. } => Some(name.clone()),
            Who::Process | Who::Holder | Who::Visitor | Who::Key { .. } => None,
        };
        self.may_operate = caller.may(Role::Operator);
        self.may_administer = caller.may(Role::Admin);
        self
    }
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}
