//! The login page. It says where a key comes from, and nothing about this server.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::page::{Section, Shell, show_with};
use super::texts::Login;
use super::visitor::Visitor;
use crate::problem::{Code, Problem};

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    shell: Shell,
    t: &'static Login,
    csrf: String,
    /// Where to go afterwards: a path of ours.
    next: &'a str,
    /// What was wrong with the last try, and how exactly.
    wrong: Option<(&'static str, &'a str)>,
}

/// The page, after a try that was refused with what it was refused for.
pub(crate) fn login_page(
    visitor: Visitor,
    csrf: String,
    next: &str,
    refused: Option<&Problem>,
) -> Response {
    let t = Login::of(visitor.language);
    let wrong = refused.map(|problem| {
        let says = match problem.code() {
            Code::TooManyAttempts => t.too_many,
            Code::RoleNeeded => t.for_programs,
            _ => t.wrong,
        };
        (says, problem.detail())
    });
    let status = refused.map_or(StatusCode::OK, Problem::status);
    let shell = Shell::new(visitor, Section::None, t.title);
    show_with(status, &LoginPage { shell, t, csrf, next, wrong })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::texts::Language;
    use crate::ui::visitor::Theme;

    #[test]
    fn what_is_put_into_the_page_stays_text() {
        let odd = "\"><script>alert('x')</script>&";
        let visitor = Visitor {
            language: Language::Portuguese,
            theme: Theme::System,
            here: odd.into(),
            csrf: odd.into(),
            name: None,
            may_operate: false,
            may_administer: false,
        };
        let t = Login::of(visitor.language);
        let shell = Shell::new(visitor, Section::None, t.title);
        let wrong = Some((t.wrong, odd));
        let page = LoginPage { shell, t, csrf: odd.into(), next: odd, wrong }.render().unwrap();
        assert!(!page.contains("<script>"), "{page}");
        assert_eq!(page.matches("alert(").count(), 3, "{page}");
    }
}
