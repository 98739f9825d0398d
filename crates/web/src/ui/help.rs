//! Help: what the pages are, the keyboard, and every error code explained.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use lavra_fleet::code::ErrorCode;

use super::page::{Section, Shell, show};
use super::texts::errors::{Explained, explained};
use super::texts::problems::problem;
use super::texts::{Common, Help};
use super::visitor::Visitor;
use super::words;
use crate::access::Role;
use crate::app::Site;
use crate::problem::Code;

pub(crate) fn routes() -> Router<Site> {
    Router::new().route("/ui/help", get(help)).route("/ui/help/errors", get(errors))
}

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage {
    shell: Shell,
    t: &'static Help,
    pages: [(&'static str, &'static str, &'static str); 9],
    roles: [(&'static str, &'static str); 4],
}

async fn help(visitor: Visitor) -> Response {
    let (t, c) = (Help::of(visitor.language), Common::of(visitor.language));
    let may = |role: Role| match role {
        Role::Viewer => t.viewer,
        Role::Operator => t.operator,
        Role::Admin => t.admin,
        Role::Writer => t.writer,
    };
    let page = HelpPage {
        shell: Shell::new(visitor, Section::Help, c.nav_help),
        pages: [
            ("/ui", c.nav_overview, t.overview),
            ("/ui/missions", c.nav_missions, t.missions),
            ("/ui/extractions", c.nav_extractions, t.extractions),
            ("/ui/tasks", c.nav_tasks, t.tasks),
            ("/ui/workers", c.nav_workers, t.workers),
            ("/ui/proxies", c.nav_proxies, t.proxies),
            ("/ui/writers", c.nav_writers, t.writers),
            ("/ui/audit", c.nav_audit, t.audit),
            ("/ui/settings", c.nav_settings, t.settings),
        ],
        roles: Role::ALL.map(|role| (role.as_str(), may(role))),
        t,
    };
    show(&page)
}

#[derive(Template)]
#[template(path = "help_errors.html")]
struct ErrorsPage {
    shell: Shell,
    t: &'static Help,
    missions: Vec<MissionCode>,
    api: Vec<ApiCode>,
}

#[derive(Debug)]
struct MissionCode {
    code: &'static str,
    says: &'static str,
    explained: Explained,
}

#[derive(Debug)]
struct ApiCode {
    code: &'static str,
    status: u16,
    what: &'static str,
    you: &'static str,
}

async fn errors(visitor: Visitor) -> Response {
    let language = visitor.language;
    let t = Help::of(language);
    let shell = Shell::new(visitor, Section::Help, t.error_codes);
    let mission = |code: &ErrorCode| MissionCode {
        code: code.as_str(),
        says: words::error(*code, shell.words),
        explained: explained(*code, language),
    };
    let api = |code: &Code| {
        let (what, you) = problem(*code, language);
        ApiCode { code: code.as_str(), status: code.status().as_u16(), what, you }
    };
    let page = ErrorsPage {
        missions: ErrorCode::ALL.iter().map(mission).collect(),
        api: Code::ALL.iter().map(api).collect(),
        shell,
        t,
    };
    show(&page)
}
