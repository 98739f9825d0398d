//! `lavra secret`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Secret {
    /// Make a key for LAVRA_SECRET_KEY.
    GenerateKey,
    /// List the names of secrets; their values are never shown.
    List,
    /// Set a secret; its value is read from stdin.
    Set {
        /// The name of the secret.
        name: String,
    },
    /// Remove a secret.
    Remove {
        /// The name of the secret.
        name: String,
    },
}
