//! What cannot be undone is asked for twice: by the script's dialog, or, without a script, by this
//! page.

use askama::Template;

use super::page::Shell;

#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct ConfirmPage {
    pub(crate) shell: Shell,
    pub(crate) says: String,
    /// How many of what, or the name of the one.
    pub(crate) count: String,
    pub(crate) how_many: &'static str,
    pub(crate) action: String,
    /// What the form sends again, with the confirmation.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) back: String,
}
