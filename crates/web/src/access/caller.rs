//! Who calls, as every handler may ask.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;

use super::Role;
use super::model::KeyId;
use crate::problem::{Code, Problem};

/// Who calls. The gate has found it out before any handler runs.
#[derive(Clone, Debug)]
pub struct Caller {
    who: Who,
    role: Role,
    csrf: String,
}

/// What a caller is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// This process itself: no socket in between.
    Process,
    /// Who can read the lock file beside the DuckDB file, which is who runs the server.
    Holder,
    /// A person or a program of this machine, without a key.
    Visitor,
    /// A program with a key.
    Key { id: KeyId, name: String },
    /// A person who has shown a key at the login page.
    Session { id: KeyId, name: String },
}

impl Caller {
    pub(super) fn new(who: Who, role: Role, csrf: String) -> Self {
        Self { who, role, csrf }
    }

    pub fn who(&self) -> &Who {
        &self.who
    }

    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether the caller may do what needs at least `least`; for pages that show what can be done.
    pub fn may(&self, least: Role) -> bool {
        self.role.includes(least)
    }

    /// Whose an `Idempotency-Key` is. Those who need no key to call are one caller: who runs the server.
    pub(crate) fn whose(&self) -> Option<&str> {
        match &self.who {
            Who::Key { id, .. } | Who::Session { id, .. } => Some(&id.0),
            Who::Process | Who::Holder | Who::Visitor => None,
        }
    }

    /// What a form of a page sends back as the field `csrf`, and a script as `X-CSRF-Token`. Empty for
    /// callers who need none.
    pub fn csrf(&self) -> &str {
        &self.csrf
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let nobody = || Problem::new(Code::Unauthenticated, "a key is needed");
        parts.extensions.get::<Self>().cloned().ok_or_else(nobody)
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned())
    }
}
