//! The task type `webhook`: one event to one receiver.
//!
//! The payload names the webhook; where it is and its secret are read when it is sent. A receiver
//! that fails is tried again by the retries of the task. The id of the delivery is that of the task,
//! so that a receiver whose answer got lost can tell that it has this one already.

use std::time::Duration;

use jiff::Timestamp;
use lavra_db::hex;
use lavra_tasks::{Context, Failure, Handler, NewTask, Outcome, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::model::{Notification, Webhook, WebhookId};
use crate::send::{Answer, Timing};
use crate::service::Webhooks;
use crate::store;

/// Eight attempts in all.
pub const POLICY: Policy =
    Policy { max_retries: 7, timeout: Some(Duration::from_secs(60)), may_be_idempotent: true };

const GONE: &str = "Not sent: webhook gone";

/// The payload of a delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub webhook: WebhookId,
    pub event: Notification,
}

impl Order {
    /// The task for it: the same webhook and the same event are one task, however often it is
    /// asked for.
    pub(crate) fn into_task(self) -> NewTask {
        let hash = Sha256::digest(format!("{} {}", self.webhook, self.event.id));
        let metadata = json!({ "webhook": self.webhook, "event": self.event.kind });
        NewTask {
            kind: Delivery::KIND.to_owned(),
            input_hash: Some(hex(&hash)),
            metadata: Some(metadata),
            payload: json!(self),
            ..NewTask::default()
        }
    }
}

/// The handler.
#[derive(Clone, Debug)]
pub struct Delivery {
    webhooks: Webhooks,
    timing: Timing,
}

impl Delivery {
    pub fn new(webhooks: Webhooks, timing: Timing) -> Self {
        Self { webhooks, timing }
    }

    async fn deliver(
        &self,
        webhook: &Webhook,
        event: &Notification,
        context: &Context,
    ) -> Result<Answer, Failure> {
        let to = match self.webhooks.destination(webhook).await {
            Ok(to) => to,
            // Changed or removed since its row was read.
            Err(Error::NotFound(_)) => return Err(Failure::retry("the webhook is being changed")),
            Err(error) => return Err(Failure::retry(error.to_string())),
        };
        let now = self.webhooks.store().clock().now();
        let delivery = context.id().to_string();
        tokio::select! {
            answer = self.webhooks.sender().send(&to, event, &delivery, now) => answer,
            _ = context.stopped() => Err(Failure::Stopped),
        }
    }

    /// The wait of a webhook's own schedule, unless the receiver asked for a longer one.
    fn patiently(&self, failure: Failure, context: &Context) -> Failure {
        match failure {
            Failure::Retry { error, after } => {
                let wait = self.timing.backoff.wait(context.retry_count() + 1);
                Failure::Retry { error, after: Some(after.map_or(wait, |after| after.max(wait))) }
            }
            Failure::Permanent(_) | Failure::Stopped => failure,
        }
    }

    async fn note(&self, webhook: &Webhook, outcome: store::Outcome) {
        let store = self.webhooks.store();
        if let Err(error) = store.note(webhook.id, &webhook.sealed, &outcome).await {
            // The task itself knows; this is only what the list shows.
            tracing::warn!(%error, webhook = webhook.name, "what came of a delivery was not noted");
        }
    }
}

impl Handler for Delivery {
    type Input = Order;

    const KIND: &'static str = "webhook";

    async fn run(&self, order: Order, context: Context) -> Outcome {
        let found = self.webhooks.store().webhook(order.webhook).await;
        let found = found.map_err(|error| Failure::retry(error.to_string()))?;
        let Some(webhook) = found.filter(|webhook| webhook.active) else {
            context.step(GONE, json!({}));
            return Ok(Some(not_sent("webhook gone")));
        };
        match self.deliver(&webhook, &order.event, &context).await {
            Ok(Answer::Taken(status)) => {
                self.note(&webhook, store::Outcome::Taken).await;
                Ok(Some(sent(status.as_u16(), self.webhooks.store().clock().now())))
            }
            Ok(Answer::Gone) => {
                tracing::warn!(webhook = webhook.name, "the receiver answered 410: deactivated");
                let text = "HTTP 410 Gone: deactivated".to_owned();
                // Noted for certain, or the next event would ask again.
                let outcome = store::Outcome::Gone(text);
                let noted = self.webhooks.store().note(webhook.id, &webhook.sealed, &outcome).await;
                noted.map_err(|error| Failure::retry(error.to_string()))?;
                context.step("Not sent: the receiver answered 410", json!({}));
                Ok(Some(not_sent("the receiver answered 410")))
            }
            Err(Failure::Stopped) => Err(Failure::Stopped),
            Err(failure) => {
                if let Failure::Retry { error, .. } | Failure::Permanent(error) = &failure {
                    self.note(&webhook, store::Outcome::Failed(error.clone())).await;
                }
                Err(self.patiently(failure, &context))
            }
        }
    }
}

fn sent(status: u16, at: Timestamp) -> Value {
    json!({ "sent": true, "status": status, "at": at })
}

fn not_sent(why: &str) -> Value {
    json!({ "sent": false, "why": why })
}
