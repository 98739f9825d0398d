//! Who may call, and what they may do.
//!
//! One gate stands before every handler. It finds out who calls (this process, the holder of the lock
//! file, someone on this machine, a key, a session), holds it against the one table of [`roles`], and
//! hands the `Caller` on. A route without a line in the table is closed to everyone.

mod attempts;
mod caller;
mod cookie;
mod credential;
mod csrf;
mod door;
mod duckdb;
mod form;
mod gate;
mod keys;
mod login;
mod model;
mod postgres;
mod role;
pub mod roles;
mod store;
mod verify;

pub(crate) use credential::secret;
pub(crate) use door::{SEC_FETCH_SITE, is_page};
pub(crate) use form::Form;
pub(crate) use gate::check;
pub(crate) use keys::{NewKey, routes};
pub(crate) use login::pages;
pub(crate) use verify::Access;

pub use caller::{Caller, Who};
pub use credential::Hash;
pub use model::{Key, KeyId, Session, Standing};
pub use role::Role;
pub use store::{Store, store};
