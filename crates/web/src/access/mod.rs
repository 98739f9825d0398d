//! Who may call, and what they may do.
//!
//! One [gate] stands before every handler. It finds out who calls (this process, the holder of the
//! lock file, someone on this machine, a key, a session), holds it against the one table of
//! [`roles`], and hands the [`Caller`] on. A route without a line in the table is closed to everyone.

mod caller;
mod credential;
mod csrf;
mod form;
mod model;
mod role;

#[expect(unused_imports, reason = "the pages need them")]
pub(crate) use caller::{Caller, Who};
#[expect(unused_imports, reason = "the pages need it")]
pub(crate) use form::Form;
pub use model::{Key, KeyId, Session, Standing};
pub use role::Role;
