//! `lavra webhook`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Webhook {
    /// List webhooks, and how they last answered.
    List,
    /// Add one; its secret is made and shown once, unless it comes from stdin.
    Add {
        /// What people call it.
        name: String,
        /// Where it is: http or https. Often it is a credential; the variable keeps it out of the
        /// shell's history.
        #[arg(long, env = "LAVRA_WEBHOOK_URL", hide_env_values = true)]
        url: String,
        /// What it is told of; may be repeated [default: everything].
        #[arg(long = "event", value_name = "EVENT")]
        events: Vec<String>,
        /// Take the secret from stdin.
        #[arg(long)]
        secret_from_stdin: bool,
    },
    /// Change one: what the flags say, and nothing else.
    Change(WebhookChange),
    /// Remove one; what waits for it is not sent.
    Remove {
        /// Its name or its id.
        webhook: String,
    },
    /// Send one a ping now.
    Test {
        /// Its name or its id.
        webhook: String,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is there or not")]
pub(crate) struct WebhookChange {
    /// Its name or its id.
    pub(crate) webhook: String,
    /// Another name.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Another address.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// What it is told of from now on; may be repeated.
    #[arg(long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Make a new secret, and show it once.
    #[arg(long, conflicts_with = "secret_from_stdin")]
    pub(crate) new_secret: bool,
    /// Take a new secret from stdin.
    #[arg(long)]
    pub(crate) secret_from_stdin: bool,
    /// Tell it again what happens from now on.
    #[arg(long, conflicts_with = "deactivate")]
    pub(crate) activate: bool,
    /// Tell it nothing any more.
    #[arg(long)]
    pub(crate) deactivate: bool,
}
