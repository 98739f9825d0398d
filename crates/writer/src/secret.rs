//! What of an order stands in no table: the headers of its source and the query of its URL, where tokens and
//! signatures are. It is sealed beside the job, or in memory only where there is no key, and gone
//! with the job's end.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lavra_db::Secrets;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::{Code, Failure};
use crate::model::JobId;
use crate::store::Claim;

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
    kept: Mutex<HashMap<String, Secret>>,
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
        self.kept().insert(name, secret);
        Ok(())
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
        let kept = self.kept().get(&name).cloned();
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

    fn kept(&self) -> MutexGuard<'_, HashMap<String, Secret>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a job's secret. Another order under the same id is refused, and has another name: it
/// cannot touch what the job needs.
fn name(id: &JobId, request: &str) -> String {
    format!("writer/{id}/{}", digest(request))
}

/// Tells texts apart without telling them.
pub(crate) fn digest(text: &str) -> String {
    let mut first = [0; 16];
    first.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
    format!("{:032x}", u128::from_be_bytes(first))
}
