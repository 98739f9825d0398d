//! Keys and sessions on PostgreSQL. Each verb is one statement, and works through a pooler.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::types::{FromSql, Type};
use lavra_db::{Error, Pg, Result};

use super::credential::Hash;
use super::model::{Key, KeyId, Session};
use super::store::{Store, unreadable};

#[derive(Clone, Debug)]
pub(super) struct Postgres {
    pg: Pg,
}

impl Postgres {
    pub(super) fn new(pg: Pg) -> Self {
        Self { pg }
    }
}

#[async_trait]
impl Store for Postgres {
    async fn add_key(&self, key: Key, hash: Hash) -> Result<bool> {
        let sql = "INSERT INTO lavra.api_keys (id, name, role, hash, created_at, expires_at)
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING RETURNING id";
        let params = [
            (&key.id.0 as _, Type::TEXT),
            (&key.name as _, Type::TEXT),
            (&key.role.as_str() as _, Type::TEXT),
            (&hash.to_hex() as _, Type::TEXT),
            (&key.created_at as _, Type::TIMESTAMPTZ),
            (&key.expires_at as _, Type::TIMESTAMPTZ),
        ];
        Ok(!self.pg.query("store a key", sql, &params).await?.is_empty())
    }

    async fn keys(&self) -> Result<Vec<Key>> {
        let operation = "list the keys";
        let sql = "SELECT id, name, role, created_at, last_used_at, expires_at, revoked_at
                   FROM lavra.api_keys ORDER BY created_at DESC, id COLLATE \"C\"";
        let rows = self.pg.query(operation, sql, &[]).await?;
        rows.iter().map(|row| key(operation, row)).collect()
    }

    async fn key(&self, id: KeyId) -> Result<Option<(Key, Hash)>> {
        let operation = "look up a key";
        let sql = "SELECT id, name, role, created_at, last_used_at, expires_at, revoked_at, hash
                   FROM lavra.api_keys WHERE id = $1";
        let rows = self.pg.query_prepared(operation, sql, &[(&id.0 as _, Type::TEXT)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let hash = Hash::from_hex(column(operation, row, 7)?);
        Ok(Some((key(operation, row)?, hash.ok_or_else(|| unreadable("a hash is none"))?)))
    }

    async fn revoke_key(&self, id: KeyId, at: Timestamp) -> Result<Option<Key>> {
        let operation = "revoke a key";
        let sql = "WITH ended AS (DELETE FROM lavra.sessions WHERE key_id = $1)
                   UPDATE lavra.api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1
                   RETURNING id, name, role, created_at, last_used_at, expires_at, revoked_at";
        let params = [(&id.0 as _, Type::TEXT), (&at as _, Type::TIMESTAMPTZ)];
        let rows = self.pg.query(operation, sql, &params).await?;
        rows.first().map(|row| key(operation, row)).transpose()
    }

    async fn key_used(&self, id: KeyId, at: Timestamp) -> Result<()> {
        let sql =
            "UPDATE lavra.api_keys SET last_used_at = greatest(last_used_at, $2) WHERE id = $1";
        let params = [(&id.0 as _, Type::TEXT), (&at as _, Type::TIMESTAMPTZ)];
        self.pg.query("note the use of a key", sql, &params).await?;
        Ok(())
    }

    async fn open_session(&self, session: Session) -> Result<()> {
        let sql =
            "WITH over AS (DELETE FROM lavra.sessions WHERE seen_at <= $4 OR created_at <= $5)
                   INSERT INTO lavra.sessions (hash, key_id, created_at, seen_at)
                   VALUES ($1, $2, $3, $3)";
        let (unused, old) = session.over_before();
        let params = [
            (&session.hash.to_hex() as _, Type::TEXT),
            (&session.key.0 as _, Type::TEXT),
            (&session.created_at as _, Type::TIMESTAMPTZ),
            (&unused as _, Type::TIMESTAMPTZ),
            (&old as _, Type::TIMESTAMPTZ),
        ];
        self.pg.query("open a session", sql, &params).await?;
        Ok(())
    }

    async fn session(&self, hash: Hash) -> Result<Option<(Session, Key)>> {
        let operation = "look up a session";
        let sql = "SELECT k.id, k.name, k.role, k.created_at, k.last_used_at, k.expires_at,
                          k.revoked_at, s.created_at, s.seen_at
                   FROM lavra.sessions s JOIN lavra.api_keys k ON k.id = s.key_id
                   WHERE s.hash = $1";
        let params = [(&hash.to_hex() as _, Type::TEXT)];
        let rows = self.pg.query_prepared(operation, sql, &params).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let key = key(operation, row)?;
        let session = Session {
            hash,
            key: key.id.clone(),
            created_at: column(operation, row, 7)?,
            seen_at: column(operation, row, 8)?,
        };
        Ok(Some((session, key)))
    }

    async fn session_seen(&self, hash: Hash, at: Timestamp) -> Result<()> {
        let sql = "UPDATE lavra.sessions SET seen_at = greatest(seen_at, $2) WHERE hash = $1";
        let params = [(&hash.to_hex() as _, Type::TEXT), (&at as _, Type::TIMESTAMPTZ)];
        self.pg.query("note the use of a session", sql, &params).await?;
        Ok(())
    }

    async fn close_session(&self, hash: Hash) -> Result<()> {
        let sql = "DELETE FROM lavra.sessions WHERE hash = $1";
        self.pg.query("close a session", sql, &[(&hash.to_hex() as _, Type::TEXT)]).await?;
        Ok(())
    }
}

fn column<'a, T: FromSql<'a>>(operation: &'static str, row: &'a Row, place: usize) -> Result<T> {
    row.try_get(place).map_err(|source| Error::Postgres { operation, source })
}

fn key(operation: &'static str, row: &Row) -> Result<Key> {
    let role: &str = column(operation, row, 2)?;
    Ok(Key {
        id: KeyId(column(operation, row, 0)?),
        name: column(operation, row, 1)?,
        role: role.parse().map_err(|reason: String| unreadable(&reason))?,
        created_at: column(operation, row, 3)?,
        last_used_at: column(operation, row, 4)?,
        expires_at: column(operation, row, 5)?,
        revoked_at: column(operation, row, 6)?,
    })
}
