//! What of an order stands in no table: the headers of its source and the query of its URL, where tokens and
//! signatures are. It is sealed beside the job, or in memory only where there is no key, and gone
//! with the job's end.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use lavra_db::Secrets;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::{Code, Failure};
use crate::model::JobId;
use crate::store::{Claim, Store};

/// A secret without a job that is younger may be of an order that is being taken.
const SETTLED: SignedDuration = SignedDuration::from_hours(1);

pub(crate) type Headers = BTreeMap<String, SecretString>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Secret {
    pub(crate) headers: Headers,
    pub(crate) query: Option<SecretString>,
}

/// As it is sealed.
#[derive(Serialize, Deserialize)]
struct Plain {
    headers: BTreeMap<String, String>,
    query: Option<String>,
}

impl Secret {
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_none()
    }

    fn to_text(&self) -> SecretString {
        let plain = |secret: &SecretString| secret.expose_secret().to_owned();
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), plain(value)));
        let text = Plain { headers: headers.collect(), query: self.query.as_ref().map(plain) };
        serde_json::to_string(&text).unwrap_or_default().into()
    }

    fn from_text(text: &SecretString) -> Option<Self> {
        let plain: Plain = serde_json::from_str(text.expose_secret()).ok()?;
        let headers = plain.headers.into_iter().map(|(name, value)| (name, value.into()));
        Some(Self { headers: headers.collect(), query: plain.query.map(Into::into) })
    }
}

/// The secrets of jobs that have not ended.
#[derive(Debug)]
pub(crate) struct Vault {
    sealed: Option<Secrets>,
    kept: Mutex<HashMap<String, Kept>>,
}

#[derive(Debug)]
struct Kept {
    secret: Secret,
    since: Timestamp,
}

impl Vault {
    /// Without a key for sealing they are in memory only.
    pub(crate) fn new(sealed: Option<Secrets>) -> Self {
        Self { sealed, kept: Mutex::default() }
    }

    pub(crate) async fn put(
        &self,
        id: &JobId,
        request: &str,
        secret: Secret,
    ) -> Result<(), Failure> {
        let name = name(id, request);
        if let Some(sealed) = &self.sealed {
            sealed.put(&name, &secret.to_text()).await?;
        }
        self.kept().insert(name, Kept { secret, since: Timestamp::now() });
        Ok(())
    }

    /// Whether other processes can read what is put here.
    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    pub(crate) async fn remove(&self, id: &JobId, request: &str) {
        let name = name(id, request);
        self.kept().remove(&name);
        if let Some(sealed) = &self.sealed
            && let Err(error) = sealed.remove(&name).await
        {
            tracing::warn!(job = %id, %error, "the secrets of a job that ended cannot be removed");
        }
    }

    pub(crate) async fn of(&self, claim: &Claim) -> Result<Secret, Failure> {
        if !claim.has_secret {
            return Ok(Secret::default());
        }
        let name = name(&claim.id, &claim.request);
        let kept = self.kept().get(&name).map(|kept| kept.secret.clone());
        if let Some(secret) = kept {
            return Ok(secret);
        }
        let text = match &self.sealed {
            None => None,
            Some(sealed) => sealed.get(&name).await?,
        };
        text.as_ref().and_then(Secret::from_text).ok_or_else(|| {
            let text = "the headers of the source and the query of its URL are gone with the \
                        process that had them, because it had no key to seal them with \
                        (LAVRA_SECRET_KEY): send the job again, with another id";
            Failure::new(Code::Generic, text)
        })
    }

    /// Removes what is here for jobs that have ended or never were: whoever should have done it died, or
    /// the job came to its end in another process.
    pub(crate) async fn sweep(&self, store: &dyn Store) -> Result<(), Failure> {
        let kept: Vec<(String, Timestamp)> =
            self.kept().iter().map(|(name, kept)| (name.clone(), kept.since)).collect();
        for (name, since) in kept {
            if is_over(store, &name, since).await? {
                self.kept().remove(&name);
            }
        }
        let Some(sealed) = &self.sealed else { return Ok(()) };
        for (name, changed) in sealed.list().await? {
            if is_over(store, &name, changed).await? {
                sealed.remove(&name).await?;
            }
        }
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a secret that was put there at this time is of no use any more.
async fn is_over(store: &dyn Store, name: &str, since: Timestamp) -> Result<bool, Failure> {
    let Some(id) = job_of(name) else { return Ok(false) };
    Ok(match store.job(&id).await? {
        Some(job) => job.completed_at.is_some(),
        None => Timestamp::now().duration_since(since) > SETTLED,
    })
}

/// The name of a job's secret. Another order under the same id is refused, and has another name: it
/// cannot touch what the job needs.
fn name(id: &JobId, request: &str) -> String {
    format!("writer/{id}/{}", digest(request))
}

/// The job that a secret is for; none if it is another one of the database.
fn job_of(name: &str) -> Option<JobId> {
    let (id, digest) = name.strip_prefix("writer/")?.split_once('/')?;
    let is_digest = digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    JobId::parse(id).filter(|_| is_digest)
}

/// Tells texts apart without telling them.
pub(crate) fn digest(text: &str) -> String {
    let mut first = [0; 16];
    first.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
    format!("{:032x}", u128::from_be_bytes(first))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lavra_db::{Database, Schema, Target, migrate};
    use uuid::Uuid;

    use super::*;
    use crate::config::Config;
    use crate::duckdb::DuckDb;
    use crate::model::Outcome;
    use crate::store::Jobs;

    /// Another process has run it.
    #[tokio::test]
    async fn what_is_in_memory_for_a_job_that_has_ended_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let target = Target::File(place.path().join("lavra.duckdb"));
        let patience = Duration::from_secs(10);
        let database = Database::open(&target, Schema::default(), patience).await.unwrap();
        migrate(&database, crate::MIGRATIONS).await.unwrap();
        let Database::Duck(duck) = &database else { panic!("it is a file") };
        let (store, process) = (DuckDb::new(duck.clone(), &Config::default()), Uuid::now_v7());
        let vault = Vault::new(None);
        let query = Some("signature=x".to_owned().into());
        for id in ["ended", "open", "being-taken"].map(|id| JobId::parse(id).unwrap()) {
            let secret = Secret { query: query.clone(), ..Secret::default() };
            vault.put(&id, "an order", secret).await.unwrap();
            if id.as_str() != "being-taken" {
                store.add(&id, "an order", true, None, 10).await.unwrap();
            }
        }
        let claim = store.claim(process, patience, &["open".into()]).await.unwrap().unwrap();
        let outcome = Outcome::of(&claim.progress);
        assert!(store.end(&claim, &claim.progress, &outcome).await.is_ok());
        vault.sweep(&store).await.unwrap();
        let mut left: Vec<String> = vault.kept().keys().cloned().collect();
        left.sort_unstable();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left[0].starts_with("writer/being-taken/") && left[1].starts_with("writer/open/"));
    }

    #[test]
    fn secrets_that_others_gave_such_a_name_are_not_of_a_job() {
        let id = JobId::parse("job-1").unwrap();
        assert_eq!(job_of(&name(&id, "an order")), Some(id));
        for other in ["writer/key", "writer/job-1/key", "worker/job-1", ""] {
            assert_eq!(job_of(other), None, "{other}");
        }
    }
}
