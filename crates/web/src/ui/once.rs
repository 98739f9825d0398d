//! A secret that is shown this once, on the answer to the form that made it: it stands in no address
//! and nothing keeps it.

use askama::Template;

use super::page::Shell;

#[derive(Template)]
#[template(path = "once.html")]
pub(crate) struct OncePage {
    pub(crate) shell: Shell,
    pub(crate) heading: &'static str,
    pub(crate) says: &'static str,
    pub(crate) label: &'static str,
    pub(crate) secret: String,
    /// Where it is listed, without its secret.
    pub(crate) list: &'static str,
    pub(crate) list_name: &'static str,
    pub(crate) done: &'static str,
}
