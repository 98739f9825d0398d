//! Secrets at rest: sealed with XChaCha20-Poly1305 under keys that come from the environment and
//! never stand in the database. The name of a secret is bound into its seal, so a sealed value
//! that someone moves to another row does not open there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::{Database, Error, Result, micros, timestamp};

const NONCE: usize = 24;
const VERSION: u8 = 1;

/// The keys of `LAVRA_SECRET_KEY`: the first seals, all open (so that keys can be changed).
#[derive(Clone)]
pub struct Keyring(Vec<XChaCha20Poly1305>);

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keyring({} keys)", self.0.len())
    }
}

impl Keyring {
    /// Reads base64 keys of 32 bytes, separated by commas.
    pub fn parse(text: &SecretString) -> Result<Self> {
        let wrong = || {
            Error::Secret(
                "LAVRA_SECRET_KEY must be 32 random bytes in base64 (several, the newest first, \
                 separated by commas); `lavra secret generate-key` makes one"
                    .into(),
            )
        };
        let mut ciphers = Vec::new();
        for part in text.expose_secret().split(',') {
            let bytes = STANDARD.decode(part.trim()).map_err(|_| wrong())?;
            ciphers.push(XChaCha20Poly1305::new_from_slice(&bytes).map_err(|_| wrong())?);
        }
        Ok(Self(ciphers))
    }

    pub fn generate() -> String {
        let mut bytes = Uuid::new_v4().into_bytes().to_vec();
        bytes.extend(Uuid::new_v4().into_bytes());
        // A version-4 id has 6 fixed bits; hashing is not needed for 244 random ones.
        STANDARD.encode(bytes)
    }

    /// Seals `plain` under its name: it opens under no other.
    pub fn seal(&self, name: &str, plain: &str) -> Result<Vec<u8>> {
        let cipher = self.0.first().ok_or_else(|| Error::Secret("no key to seal with".into()))?;
        let mut nonce = [0; NONCE];
        nonce[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        nonce[16..].copy_from_slice(&Uuid::new_v4().as_bytes()[..8]);
        let payload = Payload { msg: plain.as_bytes(), aad: name.as_bytes() };
        let sealed = cipher
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| Error::Secret(format!("the secret {name} could not be sealed")))?;
        Ok([&[VERSION][..], &nonce, &sealed].concat())
    }

    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<SecretString> {
        let unreadable = || {
            Error::Secret(format!(
                "the secret {name} was sealed with another key: add that key to LAVRA_SECRET_KEY, \
                 or set the secret again"
            ))
        };
        let (version, rest) = sealed.split_first().ok_or_else(unreadable)?;
        if *version != VERSION || rest.len() < NONCE {
            return Err(unreadable());
        }
        let (nonce, text) = rest.split_at(NONCE);
        let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| unreadable())?;
        let nonce = XNonce::from(nonce);
        for cipher in &self.0 {
            let payload = Payload { msg: text, aad: name.as_bytes() };
            if let Ok(plain) = cipher.decrypt(&nonce, payload) {
                return String::from_utf8(plain).map(Into::into).map_err(|_| unreadable());
            }
        }
        Err(unreadable())
    }
}

/// Named secrets of one database, in the schema `lavra`, which no data API exposes.
#[derive(Clone, Debug)]
pub struct Secrets {
    database: Database,
    keyring: Keyring,
}

impl Secrets {
    pub fn new(database: Database, keyring: Keyring) -> Self {
        Self { database, keyring }
    }

    pub async fn put(&self, name: &str, value: &SecretString) -> Result<()> {
        let sealed = self.keyring.seal(name, value.expose_secret())?;
        match &self.database {
            Database::Postgres(pg) => {
                let sql = "INSERT INTO lavra.secrets (name, sealed) VALUES ($1, $2)
                           ON CONFLICT (name) DO UPDATE
                           SET sealed = excluded.sealed, updated_at = now()";
                let params = [(&name as _, Type::TEXT), (&sealed as _, Type::BYTEA)];
                pg.query("store a secret", sql, &params).await?;
            }
            Database::Duck(duck) => {
                let (name, now) = (name.to_owned(), micros(duck.clock().now()));
                duck.write("store a secret", move |tx| {
                    tx.execute(
                        "INSERT INTO lavra.secrets (name, sealed, updated_at)
                         VALUES ($1, $2, make_timestamp($3))
                         ON CONFLICT (name) DO UPDATE
                         SET sealed = excluded.sealed, updated_at = excluded.updated_at",
                        duckdb::params![name, sealed, now],
                    )
                })
                .await?;
            }
        }
        Ok(())
    }

    pub async fn get(&self, name: &str) -> Result<Option<SecretString>> {
        let operation = "read a secret";
        let sql = "SELECT sealed FROM lavra.secrets WHERE name = $1";
        let sealed: Option<Vec<u8>> = match &self.database {
            Database::Postgres(pg) => {
                let rows = pg.query(operation, sql, &[(&name as _, Type::TEXT)]).await?;
                let sealed = rows.first().map(|row| row.try_get(0)).transpose();
                sealed.map_err(|source| Error::Postgres { operation, source })?
            }
            Database::Duck(duck) => {
                let name = name.to_owned();
                duck.read(operation, move |connection| {
                    let mut statement = connection.prepare_cached(sql)?;
                    let mut rows = statement.query([name])?;
                    rows.next()?.map(|row| row.get(0)).transpose()
                })
                .await?
            }
        };
        sealed.map(|bytes| self.keyring.open(name, &bytes)).transpose()
    }

    /// Names and the times of their last change; never values.
    pub async fn list(&self) -> Result<Vec<(String, Timestamp)>> {
        let operation = "list the secrets";
        match &self.database {
            Database::Postgres(pg) => {
                let sql = "SELECT name, updated_at FROM lavra.secrets ORDER BY name";
                let rows = pg.query(operation, sql, &[]).await?;
                let read = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
                let list = rows.iter().map(read).collect::<Result<_, tokio_postgres::Error>>();
                list.map_err(|source| Error::Postgres { operation, source })
            }
            Database::Duck(duck) => {
                let sql = "SELECT name, epoch_us(updated_at) FROM lavra.secrets ORDER BY name";
                duck.read(operation, move |connection| {
                    let mut statement = connection.prepare_cached(sql)?;
                    let rows =
                        statement.query_map([], |row| Ok((row.get(0)?, timestamp(row.get(1)?))))?;
                    rows.collect()
                })
                .await
            }
        }
    }

    pub async fn remove(&self, name: &str) -> Result<bool> {
        let operation = "remove a secret";
        let sql = "DELETE FROM lavra.secrets WHERE name = $1 RETURNING name";
        match &self.database {
            Database::Postgres(pg) => {
                let rows = pg.query(operation, sql, &[(&name as _, Type::TEXT)]).await?;
                Ok(!rows.is_empty())
            }
            Database::Duck(duck) => {
                let name = name.to_owned();
                duck.write(operation, move |tx| {
                    let mut statement = tx.prepare_cached(sql)?;
                    let mut rows = statement.query([&name])?;
                    Ok(rows.next()?.is_some())
                })
                .await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring() -> Keyring {
        Keyring::parse(&Keyring::generate().into()).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_again_and_shows_nothing() {
        let ring = keyring();
        let sealed = ring.seal("proxy-1", "hunter2").unwrap();
        assert_eq!(ring.open("proxy-1", &sealed).unwrap().expose_secret(), "hunter2");
        assert!(!sealed.windows(7).any(|part| part == b"hunter2"));
    }

    #[test]
    fn a_seal_does_not_open_under_another_name() {
        let ring = keyring();
        let sealed = ring.seal("proxy-1", "hunter2").unwrap();
        assert!(ring.open("proxy-2", &sealed).is_err());
    }

    #[test]
    fn a_new_key_in_front_still_opens_what_the_old_one_sealed() {
        let old = Keyring::generate();
        let sealed = Keyring::parse(&old.clone().into()).unwrap().seal("a", "x").unwrap();
        let both = format!("{},{old}", Keyring::generate());
        let ring = Keyring::parse(&both.into()).unwrap();
        assert_eq!(ring.open("a", &sealed).unwrap().expose_secret(), "x");
    }

    #[test]
    fn a_truncated_or_changed_seal_is_an_error_not_a_panic() {
        let ring = keyring();
        let mut sealed = ring.seal("a", "x").unwrap();
        for length in 0..sealed.len() {
            assert!(ring.open("a", &sealed[..length]).is_err());
        }
        sealed[30] ^= 1;
        assert!(ring.open("a", &sealed).is_err());
    }
}
