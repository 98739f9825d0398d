//! Whether what a caller shows is right: what the gate and the login page share.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use lavra_db::{Database, lock_holder};

use super::attempts::Attempts;
use super::cookie::Cookies;
use super::credential::{Hash, KeyText, secret};
use super::model::{Key, KeyId, Session, Standing};
use super::store::{Store, store};
use crate::app::App;
use crate::problem::{Code, Problem};

/// Uses are noted at most so often.
const NOTED_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// What is known of callers, once per router.
#[derive(Debug)]
pub(crate) struct Access {
    pub(super) store: Arc<dyn Store>,
    pub(super) cookies: Cookies,
    /// Whether also those on this machine need a key.
    pub(super) require_key: bool,
    database: Database,
    attempts: Attempts,
}

impl Access {
    pub(crate) fn new(app: &App) -> Self {
        let scheme = app.public_url.as_ref().and_then(|url| url.scheme_str());
        Self {
            store: store(&app.database),
            cookies: Cookies { secure: scheme == Some("https") },
            require_key: app.require_key,
            database: app.database.clone(),
            attempts: Attempts::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.database.clock().now()
    }

    /// The key whose text is shown, if it is valid.
    pub(super) async fn key(&self, from: IpAddr, text: &str) -> Result<Key, Problem> {
        let shown = KeyText::parse(text);
        let hash = shown.as_ref().map(|shown| shown.hash);
        self.attempts.admit(from, hash, Instant::now()).map_err(too_many)?;
        let Some(shown) = shown else {
            return Err(self.wrong(
                from,
                None,
                "that is no key: they begin with lavra_ and have 67 letters",
            ));
        };
        let found = self.store.key(shown.id.clone()).await?;
        let Some((key, _)) = found.filter(|(_, hash)| hash.is_same(&shown.hash)) else {
            return Err(self.wrong(from, Some(shown.id), "the key is not known here"));
        };
        // Only its holder learns what became of it.
        match key.standing(self.now()) {
            Standing::Valid => {}
            Standing::Expired => return Err(self.over(from, &key, "the key has expired")),
            Standing::Revoked => return Err(self.over(from, &key, "the key was revoked")),
        }
        self.attempts.succeeded(shown.hash, Instant::now());
        self.note(&key).await;
        Ok(key)
    }

    /// Whether the token is the one in the lock file beside the database.
    pub(super) async fn holder(&self, from: IpAddr, token: &str) -> Result<(), Problem> {
        let shown = Hash::of(token);
        self.attempts.admit(from, Some(shown), Instant::now()).map_err(too_many)?;
        if let Database::Duck(duck) = &self.database {
            let path = duck.path().to_owned();
            let holder = tokio::task::spawn_blocking(move || lock_holder(&path)).await;
            let right = holder.ok().and_then(Result::ok).flatten().and_then(|holder| holder.token);
            if right.is_some_and(|right| Hash::of(&right).is_same(&shown)) {
                self.attempts.succeeded(shown, Instant::now());
                return Ok(());
            }
        }
        Err(self.wrong(from, None, "neither a key nor the token in the lock file of the database"))
    }

    /// A new session of a key, as what is to stand in the cookie.
    pub(super) async fn open_session(&self, key: &Key) -> Result<String, Problem> {
        let (cookie, now) = (secret(), self.now());
        let hash = Hash::of(&cookie);
        let session = Session { hash, key: key.id.clone(), created_at: now, seen_at: now };
        self.store.open_session(session).await?;
        Ok(cookie)
    }

    /// The key of a session that is not over. A cookie that is too old is no attempt at anything: pages
    /// that stay open overnight send it again and again.
    pub(super) async fn session(&self, cookie: &str) -> Result<Key, Problem> {
        let over = || Problem::new(Code::Unauthenticated, "the session is over: log in again");
        let (session, key) = self.store.session(Hash::of(cookie)).await?.ok_or_else(over)?;
        let now = self.now();
        if session.is_over(now) || key.standing(now) != Standing::Valid {
            return Err(over());
        }
        if now.duration_since(session.seen_at) >= NOTED_EVERY
            && let Err(error) = self.store.session_seen(session.hash, now).await
        {
            tracing::warn!(%error, "the use of a session was not noted");
        }
        self.note(&key).await;
        Ok(key)
    }

    /// That it could not be noted is no reason to refuse: a disk may be full, and someone wants to see.
    async fn note(&self, key: &Key) {
        let now = self.now();
        let is_due = key.last_used_at.is_none_or(|last| now.duration_since(last) >= NOTED_EVERY);
        if is_due && let Err(error) = self.store.key_used(key.id.clone(), now).await {
            tracing::warn!(%error, key = %key.id, "the use of a key was not noted");
        }
    }

    fn wrong(&self, from: IpAddr, guessed: Option<KeyId>, detail: &str) -> Problem {
        tracing::warn!(%from, key = guessed.as_ref().map(|id| &*id.0), "refused: {detail}");
        self.count(from, guessed, detail)
    }

    /// Its holder has it, so nobody guesses at it.
    fn over(&self, from: IpAddr, key: &Key, detail: &str) -> Problem {
        tracing::warn!(%from, key = %key.id, name = key.name, "refused: {detail}");
        self.count(from, None, detail)
    }

    fn count(&self, from: IpAddr, guessed: Option<KeyId>, detail: &str) -> Problem {
        metrics::counter!("lavra_wrong_keys_total").increment(1);
        match self.attempts.failed(from, guessed, Instant::now()) {
            None => Problem::new(Code::Unauthenticated, detail),
            Some(wait) => too_many(wait),
        }
    }
}

fn too_many(wait: Duration) -> Problem {
    let seconds = wait.as_secs_f64().ceil() as u32;
    let detail = format!("too many wrong keys: the next one is looked at in {seconds} s");
    Problem::new(Code::TooManyAttempts, detail).after(seconds)
}
