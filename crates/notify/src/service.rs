//! Webhooks as people have them: everything that the command line and the API do.

use std::sync::Arc;

use lavra_db::Database;
use lavra_fleet::keys::Sealed;
use lavra_tasks::Failure;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use crate::LATE;
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::model::{Notification, Topic, Webhook, WebhookId};
use crate::send::{Answer, Sender, Timing};
use crate::store::{Edit, Edited, New, Outcome, Store};

const LONGEST_NAME: usize = 100;

#[derive(Clone, Debug)]
pub struct Webhooks {
    store: Arc<dyn Store>,
    keys: Arc<Sealed>,
    sender: Sender,
}

/// A webhook to be added.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    pub name: String,
    pub url: SecretString,
    /// What requests are signed with.
    pub secret: SecretString,
    /// All, if nothing is said.
    #[serde(default)]
    pub events: Option<Vec<Topic>>,
}

/// What a person changes; the rest stays as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Changes {
    pub name: Option<String>,
    pub url: Option<SecretString>,
    pub secret: Option<SecretString>,
    pub events: Option<Vec<Topic>>,
    pub active: Option<bool>,
}

/// What came of a ping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub ok: bool,
    /// What the receiver answered, or why it could not.
    pub said: String,
}

impl Webhooks {
    /// The webhooks of a database that has been migrated. `private_allowed`: whether addresses of
    /// the inside may be called.
    pub fn open(
        database: &Database,
        keys: Arc<Sealed>,
        timing: Timing,
        private_allowed: bool,
    ) -> Result<Self> {
        let sender = Sender::new(timing, private_allowed)?;
        Ok(Self { store: crate::store_of(database, LATE), keys, sender })
    }

    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Oldest first.
    pub async fn list(&self) -> Result<Vec<Webhook>> {
        self.store.webhooks().await
    }

    /// The one that is meant by an id or a name.
    pub async fn find(&self, text: &str) -> Result<Webhook> {
        let mut all = self.store.webhooks().await?.into_iter();
        let found = all.find(|webhook| webhook.name == text || webhook.id.to_string() == text);
        found.ok_or_else(|| Error::NotFound(text.to_owned()))
    }

    pub async fn add(&self, order: NewWebhook) -> Result<Webhook> {
        let id = WebhookId(self.store.clock().new_id());
        let destination = Destination::parse(&order.url, &order.secret)?;
        let name = name(&order.name)?;
        let events = order.events.map_or_else(|| Ok(Topic::ALL.to_vec()), topics)?;
        let sealed = destination.seal(id, self.keys.to_seal()?).await?;
        let new = New {
            id,
            name: name.clone(),
            url: destination.shown(),
            events,
            sealed: sealed.clone(),
        };
        let added = self.store.add(new).await?;
        if added != Edited::Done {
            self.forget(&sealed).await?;
        }
        settled(added, &id.to_string(), &name)?;
        self.find(&id.to_string()).await
    }

    pub async fn change(&self, webhook: &Webhook, changes: Changes) -> Result<Webhook> {
        let id = webhook.id;
        let name = changes.name.as_deref().map(name).transpose()?;
        let mut edit = Edit {
            name: name.clone(),
            events: changes.events.map(topics).transpose()?,
            active: changes.active,
            ..Edit::default()
        };
        if changes.url.is_some() || changes.secret.is_some() {
            let before = match (&changes.url, &changes.secret) {
                // What was sealed need not be readable any more.
                (Some(url), Some(secret)) => Destination::parse(url, secret)?,
                _ => self.destination(webhook).await?,
            };
            let destination = before.changed(changes.url.as_ref(), changes.secret.as_ref())?;
            edit.url = Some(destination.shown());
            edit.sealed = Some(destination.seal(id, self.keys.to_seal()?).await?);
        }
        let sealed = edit.sealed.clone();
        let edited = self.store.edit(id, edit).await?;
        if let Some(sealed) = sealed {
            let unused = if edited == Edited::Done { &webhook.sealed } else { &sealed };
            self.forget(unused).await?;
        }
        settled(edited, &id.to_string(), &name.unwrap_or_default())?;
        self.find(&id.to_string()).await
    }

    pub async fn remove(&self, webhook: &Webhook) -> Result<()> {
        let removed = self.store.remove(webhook.id).await?;
        settled(removed, &webhook.id.to_string(), "")?;
        self.forget(&webhook.sealed).await
    }

    /// Sends a ping now, whether it is active or not, and notes what came of it.
    pub async fn test(&self, webhook: &Webhook) -> Result<Sent> {
        let to = self.destination(webhook).await?;
        let now = self.store.clock().now();
        let id = self.store.clock().new_id();
        let ping = Notification {
            id: format!("ping:{id}"),
            kind: "ping".into(),
            created_at: now,
            data: json!({ "webhook_id": webhook.id, "name": webhook.name }),
            text: format!("Lavra can reach the webhook {}.", webhook.name),
        };
        let (ok, said) = match self.sender.send(&to, &ping, &id.to_string(), now).await {
            Ok(Answer::Taken(status)) => (true, format!("HTTP {status}")),
            // A person asked, and a person decides.
            Ok(Answer::Gone) => (false, "HTTP 410 Gone".to_owned()),
            Err(Failure::Retry { error, .. } | Failure::Permanent(error)) => (false, error),
            Err(Failure::Stopped) => (false, "it was stopped".to_owned()),
        };
        let outcome = if ok { Outcome::Taken } else { Outcome::Failed(said.clone()) };
        self.store.note(webhook.id, &webhook.sealed, &outcome).await?;
        Ok(Sent { ok, said })
    }

    /// Where it is, and its secret.
    pub(crate) async fn destination(&self, webhook: &Webhook) -> Result<Destination> {
        let found = Destination::open(&webhook.sealed, self.keys.to_open()?).await?;
        found.ok_or_else(|| Error::NotFound(webhook.name.clone()))
    }

    async fn forget(&self, sealed: &str) -> Result<()> {
        if let Ok(secrets) = self.keys.to_open() {
            secrets.remove(sealed).await?;
        }
        Ok(())
    }
}

fn settled(edited: Edited, id: &str, name: &str) -> Result<()> {
    match edited {
        Edited::Done => Ok(()),
        Edited::NotFound => Err(Error::NotFound(id.to_owned())),
        Edited::NameTaken => Err(Error::NameTaken(name.to_owned())),
    }
}

/// A name can stand in a path, before a verb: it has neither a slash nor a colon.
fn name(text: &str) -> Result<String> {
    let text = text.trim();
    let is_plain = !text.chars().any(|letter| letter.is_control() || "/:".contains(letter));
    if text.is_empty() || text.chars().count() > LONGEST_NAME || !is_plain {
        return Err(Error::Invalid(format!(
            "a name has 1 to {LONGEST_NAME} characters in one line, without / and :"
        )));
    }
    Ok(text.to_owned())
}

/// Each once, in their own order.
fn topics(mut events: Vec<Topic>) -> Result<Vec<Topic>> {
    events.sort_unstable();
    events.dedup();
    if events.is_empty() {
        return Err(Error::Invalid("a webhook is for at least one event".into()));
    }
    Ok(events)
}
