//! `lavra key`.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use lavra_web::access::Role;

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key, which is printed this once: `lavra key create grafana --role viewer`.
    Create {
        /// What it is for.
        name: String,
        /// What it may; writer is for programs that work on tasks.
        #[arg(long, value_parser = PossibleValuesParser::new(Role::ALL.map(Role::as_str)))]
        role: String,
        /// When it ends: 90d, 12h, 1y [default: when it is revoked].
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List keys, the newest first; also those that are over.
    List,
    /// End a key, and the sessions that were opened with it.
    Revoke {
        /// The id of the key, as `lavra key list` shows it.
        id: String,
    },
}
