//! The questions that are asked of keys and sessions. Each verb is one transaction.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::{Database, Error, Result};

use super::credential::Hash;
use super::duckdb::DuckDb;
use super::model::{Key, KeyId, Session};
use super::postgres::Postgres;

#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Whether the key was added: not if its id is taken.
    async fn add_key(&self, key: Key, hash: Hash) -> Result<bool>;

    /// All keys, also those that are over, the newest first.
    async fn keys(&self) -> Result<Vec<Key>>;

    async fn key(&self, id: KeyId) -> Result<Option<(Key, Hash)>>;

    /// Ends a key and its sessions, and answers it as it is then; the first time counts.
    async fn revoke_key(&self, id: KeyId, at: Timestamp) -> Result<Option<Key>>;

    async fn key_used(&self, id: KeyId, at: Timestamp) -> Result<()>;

    /// Adds a session, and removes those that are over by then.
    async fn open_session(&self, session: Session) -> Result<()>;

    /// A session with its key, whether they are over or not.
    async fn session(&self, hash: Hash) -> Result<Option<(Session, Key)>>;

    async fn session_seen(&self, hash: Hash, at: Timestamp) -> Result<()>;

    async fn close_session(&self, hash: Hash) -> Result<()>;
}

/// The keys and sessions of a database that has the migrations.
pub fn store(database: &Database) -> Arc<dyn Store> {
    match database {
        Database::Duck(duck) => Arc::new(DuckDb::new(duck.clone())),
        Database::Postgres(pg) => Arc::new(Postgres::new(pg.clone())),
    }
}

/// A row that none of us has written.
pub(super) fn unreadable(reason: &str) -> Error {
    Error::Config(format!("the table lavra.api_keys: {reason}"))
}
