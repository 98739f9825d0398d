//! Keys and sessions in a DuckDB file. Each verb is one closure on the writer thread, which is the
//! lock; times travel as microseconds.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::duckdb::{self, Connection, Params, Row};
use lavra_db::statement::{all, run};
use lavra_db::{Duck, Result, micros, timestamp};

use super::Role;
use super::credential::Hash;
use super::model::{Key, KeyId, Session};
use super::store::{Store, unreadable};

#[derive(Clone, Debug)]
pub(super) struct DuckDb {
    duck: Duck,
}

impl DuckDb {
    pub(super) fn new(duck: Duck) -> Self {
        Self { duck }
    }

    async fn write<P>(&self, operation: &'static str, sql: &'static str, params: P) -> Result<()>
    where
        P: Params + Clone + Send + 'static,
    {
        let job = move |tx: &Connection| run(tx, sql, params.clone());
        self.duck.write(operation, job).await
    }
}

#[async_trait]
impl Store for DuckDb {
    async fn add_key(&self, key: Key, hash: Hash) -> Result<bool> {
        let sql = "INSERT INTO lavra.api_keys (id, name, role, hash, created_at, expires_at)
                   VALUES ($1, $2, $3, $4, make_timestamp($5), make_timestamp($6))
                   ON CONFLICT (id) DO NOTHING RETURNING id";
        let row = (
            key.id.0,
            key.name,
            key.role.as_str(),
            hash.to_hex(),
            micros(key.created_at),
            key.expires_at.map(micros),
        );
        let job = move |tx: &Connection| all(tx, sql, row.clone(), |_| Ok(()));
        Ok(!self.duck.write("store a key", job).await?.is_empty())
    }

    async fn keys(&self) -> Result<Vec<Key>> {
        let sql = "SELECT id, name, role, epoch_us(created_at), epoch_us(last_used_at),
                          epoch_us(expires_at), epoch_us(revoked_at)
                   FROM lavra.api_keys ORDER BY created_at DESC, id";
        let job = move |connection: &Connection| all(connection, sql, [], key);
        self.duck.read("list the keys", job).await?.into_iter().collect()
    }

    async fn key(&self, id: KeyId) -> Result<Option<(Key, Hash)>> {
        let sql = "SELECT id, name, role, epoch_us(created_at), epoch_us(last_used_at),
                          epoch_us(expires_at), epoch_us(revoked_at), hash
                   FROM lavra.api_keys WHERE id = $1";
        let job = move |connection: &Connection| {
            let read = |row: &Row<'_>| Ok((key(row)?, row.get::<_, String>(7)?));
            all(connection, sql, [id.0], read)
        };
        let found = self.duck.read("look up a key", job).await?.pop();
        let Some((key, hash)) = found else { return Ok(None) };
        let hash = Hash::from_hex(&hash).ok_or_else(|| unreadable("a hash is none"))?;
        Ok(Some((key?, hash)))
    }

    async fn revoke_key(&self, id: KeyId, at: Timestamp) -> Result<Option<Key>> {
        let end = "DELETE FROM lavra.sessions WHERE key_id = $1";
        let revoke = "UPDATE lavra.api_keys
                      SET revoked_at = coalesce(revoked_at, make_timestamp($2)) WHERE id = $1
                      RETURNING id, name, role, epoch_us(created_at), epoch_us(last_used_at),
                                epoch_us(expires_at), epoch_us(revoked_at)";
        let at = micros(at);
        let job = move |tx: &Connection| {
            tx.prepare_cached(end)?.execute([&id.0])?;
            all(tx, revoke, (&id.0, at), key)
        };
        self.duck.write("revoke a key", job).await?.pop().transpose()
    }

    async fn key_used(&self, id: KeyId, at: Timestamp) -> Result<()> {
        let sql = "UPDATE lavra.api_keys
                   SET last_used_at = make_timestamp($2) WHERE id = $1";
        self.write("note the use of a key", sql, (id.0, micros(at))).await
    }

    async fn open_session(&self, session: Session) -> Result<()> {
        let remove = "DELETE FROM lavra.sessions
                      WHERE epoch_us(seen_at) <= $1 OR epoch_us(created_at) <= $2";
        let add = "INSERT INTO lavra.sessions (hash, key_id, created_at, seen_at)
                   VALUES ($1, $2, make_timestamp($3), make_timestamp($3))";
        let (unused, old) = session.over_before();
        let (hash, created) = (session.hash.to_hex(), micros(session.created_at));
        let job = move |tx: &Connection| {
            tx.prepare_cached(remove)?.execute((micros(unused), micros(old)))?;
            tx.prepare_cached(add)?.execute((&hash, &session.key.0, created)).map(|_| ())
        };
        self.duck.write("open a session", job).await
    }

    async fn session(&self, hash: Hash) -> Result<Option<(Session, Key)>> {
        // Two look-ups by key: a join would scan.
        let session = "SELECT key_id, epoch_us(created_at), epoch_us(seen_at)
                       FROM lavra.sessions WHERE hash = $1";
        let of_key = "SELECT id, name, role, epoch_us(created_at), epoch_us(last_used_at),
                             epoch_us(expires_at), epoch_us(revoked_at)
                      FROM lavra.api_keys WHERE id = $1";
        let job = move |connection: &Connection| {
            let read = |row: &Row<'_>| {
                Ok(Session {
                    hash,
                    key: KeyId(row.get(0)?),
                    created_at: timestamp(row.get(1)?),
                    seen_at: timestamp(row.get(2)?),
                })
            };
            let Some(session) = all(connection, session, [hash.to_hex()], read)?.pop() else {
                return Ok(None);
            };
            let key = all(connection, of_key, [&session.key.0], key)?.pop();
            Ok(key.map(|key| (session, key)))
        };
        let found = self.duck.read("look up a session", job).await?;
        found.map(|(session, key)| Ok((session, key?))).transpose()
    }

    async fn session_seen(&self, hash: Hash, at: Timestamp) -> Result<()> {
        let sql = "UPDATE lavra.sessions SET seen_at = make_timestamp($2)
                   WHERE hash = $1";
        self.write("note the use of a session", sql, (hash.to_hex(), micros(at))).await
    }

    async fn close_session(&self, hash: Hash) -> Result<()> {
        let sql = "DELETE FROM lavra.sessions WHERE hash = $1";
        self.write("close a session", sql, [hash.to_hex()]).await
    }
}

fn key(row: &Row<'_>) -> duckdb::Result<Result<Key>> {
    let role: String = row.get(2)?;
    let time = |place| row.get::<_, Option<i64>>(place).map(|time| time.map(timestamp));
    let key = |role| {
        Ok(Key {
            id: KeyId(row.get(0)?),
            name: row.get(1)?,
            role,
            created_at: timestamp(row.get(3)?),
            last_used_at: time(4)?,
            expires_at: time(5)?,
            revoked_at: time(6)?,
        })
    };
    match role.parse::<Role>() {
        Ok(role) => key(role).map(Ok),
        Err(reason) => Ok(Err(unreadable(&reason))),
    }
}
