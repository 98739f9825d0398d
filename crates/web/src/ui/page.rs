//! What every page has around it, and how a page becomes an answer.

use askama::Template;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};

use super::assets;
use super::format::Format;
use super::texts::{self, Common, Language, Words};
use super::visitor::{Theme, Visitor};
use crate::problem::Problem;

/// The sections of the menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Missions,
    Workers,
    Proxies,
    Writers,
    Extractions,
    Tasks,
    Audit,
    Settings,
    Help,
    /// A page that is in none.
    None,
}

impl Section {
    fn path(self) -> &'static str {
        match self {
            Self::Overview | Self::None => "/ui",
            Self::Missions => "/ui/missions",
            Self::Workers => "/ui/workers",
            Self::Proxies => "/ui/proxies",
            Self::Writers => "/ui/writers",
            Self::Extractions => "/ui/extractions",
            Self::Tasks => "/ui/tasks",
            Self::Audit => "/ui/audit",
            Self::Settings => "/ui/settings",
            Self::Help => "/ui/help",
        }
    }

    fn name(self, t: &'static Common) -> &'static str {
        match self {
            Self::Overview | Self::None => t.nav_overview,
            Self::Missions => t.nav_missions,
            Self::Workers => t.nav_workers,
            Self::Proxies => t.nav_proxies,
            Self::Writers => t.nav_writers,
            Self::Extractions => t.nav_extractions,
            Self::Tasks => t.nav_tasks,
            Self::Audit => t.nav_audit,
            Self::Settings => t.nav_settings,
            Self::Help => t.nav_help,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) href: &'static str,
    pub(crate) name: &'static str,
    pub(crate) is_here: bool,
}

/// What stands around the content of a page.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) t: &'static Common,
    pub(crate) words: &'static Words,
    pub(crate) f: Format,
    pub(crate) visitor: Visitor,
    pub(crate) title: String,
    section: Section,
    /// What the page shows, as [`live`](super::live) names it; a page of none is not refreshed.
    pub(crate) topics: &'static str,
    /// What came of what was done on the page before.
    pub(crate) notice: Option<String>,
}

impl Shell {
    pub(crate) fn new(visitor: Visitor, section: Section, title: impl Into<String>) -> Self {
        let language = visitor.language;
        Self {
            t: Common::of(language),
            words: Words::of(language),
            f: Format::new(language),
            visitor,
            title: title.into(),
            section,
            topics: "",
            notice: None,
        }
    }

    /// The page follows what happens to these, separated by spaces.
    pub(crate) fn follows(mut self, topics: &'static str) -> Self {
        self.topics = topics;
        self
    }

    /// Shows what came of what was done before, which the address carries.
    pub(crate) fn saying(mut self, notice: Option<String>) -> Self {
        self.notice = notice;
        self
    }

    pub(crate) fn menu(&self) -> [(&'static str, Vec<Link>); 3] {
        let link = |section: Section| Link {
            href: section.path(),
            name: section.name(self.t),
            is_here: self.section == section,
        };
        let links = |sections: &[Section]| sections.iter().copied().map(link).collect();
        [
            (
                self.t.group_work,
                links(&[
                    Section::Overview,
                    Section::Missions,
                    Section::Extractions,
                    Section::Tasks,
                ]),
            ),
            (self.t.group_fleet, links(&[Section::Workers, Section::Proxies, Section::Writers])),
            (self.t.group_system, links(&[Section::Audit, Section::Settings, Section::Help])),
        ]
    }

    #[expect(clippy::unused_self, reason = "templates ask it like the others")]
    pub(crate) fn style(&self) -> &'static str {
        assets::style_path()
    }

    #[expect(clippy::unused_self, reason = "templates ask it like the others")]
    pub(crate) fn script(&self) -> &'static str {
        assets::script_path()
    }

    #[expect(clippy::unused_self, reason = "templates ask it like the others")]
    pub(crate) fn icon(&self) -> &'static str {
        assets::icon_path()
    }

    /// Each theme with its name, and whether it is the one in use.
    pub(crate) fn themes(&self) -> [(&'static str, &'static str, bool); 3] {
        let t = self.t;
        [(Theme::System, t.theme_auto), (Theme::Light, t.theme_light), (Theme::Dark, t.theme_dark)]
            .map(|(theme, name)| (theme.as_str(), name, self.visitor.theme == theme))
    }

    pub(crate) fn languages(&self) -> [(&'static str, &'static str, bool); 2] {
        [(Language::Portuguese, "Português"), (Language::English, "English")]
            .map(|(language, name)| (language.tag(), name, self.visitor.language == language))
    }
}

/// A template as an answer.
pub(crate) fn show(template: &impl Template) -> Response {
    show_with(StatusCode::OK, template)
}

pub(crate) fn show_with(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page was not made");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Back to a page after something was done, with what is to be said there.
pub(crate) fn back_to(path: &str, notice: &str) -> Response {
    let separator = if path.contains('?') { '&' } else { '?' };
    let notice: String = form_urlencoded::byte_serialize(notice.as_bytes()).collect();
    Redirect::to(&format!("{path}{separator}said={notice}")).into_response()
}

/// What an address carries beside what its page is about.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct Said {
    pub(crate) said: Option<String>,
}

impl Said {
    /// At most a line: it comes from an address that anybody may have written.
    pub(crate) fn text(self) -> Option<String> {
        self.said.map(|text| text.chars().filter(|c| !c.is_control()).take(300).collect())
    }
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    shell: Shell,
    heading: &'static str,
    says: &'static str,
    /// What was wrong here, as the service says it.
    detail: String,
    advice: &'static str,
    code: &'static str,
}

/// Turns what went wrong on the way to a page into a page, for people. Around everything else, so
/// that no handler needs to know.
pub(crate) async fn explain(visitor: Visitor, request: Request, next: Next) -> Response {
    let is_page = request.uri().path() == "/ui" || request.uri().path().starts_with("/ui/");
    let wants_html = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    // A script reads problems better than pages.
    let mode = request.headers().get("sec-fetch-mode");
    let is_script = mode.is_some_and(|mode| mode != "navigate");
    let wants_html = wants_html.is_some_and(|kinds| kinds.contains("text/html"));
    let is_person = is_page && wants_html && !is_script;
    let response = next.run(request).await;
    match response.extensions().get::<Problem>().cloned() {
        Some(problem) if is_person => {
            let visitor = visitor.known_as(response.extensions().get());
            refused(visitor, &response, &problem)
        }
        _ => response,
    }
}

fn refused(visitor: Visitor, response: &Response, problem: &Problem) -> Response {
    let status = response.status();
    let t = Common::of(visitor.language);
    let passes = status == StatusCode::SERVICE_UNAVAILABLE;
    let (title, advice) = texts::problems::problem(problem.code(), visitor.language);
    let (heading, says) = if passes {
        (t.trouble_title, t.trouble_says)
    } else if status == StatusCode::NOT_FOUND {
        (t.not_found_title, title)
    } else {
        (t.refused_title, title)
    };
    let code = problem.code().as_str();
    let detail = problem.detail().to_owned();
    let shell = Shell::new(visitor, Section::None, heading);
    let shell = if passes { shell.follows("all") } else { shell };
    let page = show_with(status, &RefusedPage { shell, heading, says, detail, advice, code });
    // What else the answer says stays: when to try again, and cookies.
    let (mut parts, body) = page.into_parts();
    for (name, value) in response.headers() {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            parts.headers.append(name.clone(), value.clone());
        }
    }
    Response::from_parts(parts, body)
}

pub(crate) async fn not_found(visitor: Visitor) -> Response {
    let t = Common::of(visitor.language);
    let shell = Shell::new(visitor, Section::None, t.not_found_title);
    let (heading, says) = (t.not_found_title, t.not_found_says);
    let page = RefusedPage { shell, heading, says, detail: String::new(), advice: "", code: "" };
    show_with(StatusCode::NOT_FOUND, &page)
}

/// An address within the pages, so that nobody is sent elsewhere.
pub(crate) fn local(path: &str) -> Option<&str> {
    let is_ours = path == "/ui" || path.starts_with("/ui/") || path.starts_with("/ui?");
    let is_plain = path.bytes().all(|byte| (0x21..0x7f).contains(&byte) && byte != b'\\');
    (is_ours && is_plain && !path.contains("//")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_are_places_to_come_back_to() {
        for path in ["/ui", "/ui/missions?state=bank&from=2025-01-01", "/ui?said=a"] {
            assert_eq!(local(path), Some(path));
        }
        for path in [
            "",
            "/",
            "//evil.example",
            "/ui//evil.example",
            "/uix",
            "https://a/ui",
            "/ui/\\a",
            "/ui/a b",
        ] {
            assert_eq!(local(path), None, "{path}");
        }
    }
}
