//! What a webhook is, and what it is told.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebhookId(pub Uuid);

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a webhook can ask to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Topic {
    #[serde(rename = "mission.failed")]
    MissionFailed,
    /// No proxy is free any more.
    #[serde(rename = "pool.exhausted")]
    PoolExhausted,
    #[serde(rename = "extraction.complete")]
    ExtractionComplete,
    /// A run ended, and something is missing.
    #[serde(rename = "extraction.short")]
    ExtractionShort,
    #[serde(rename = "task.dead_lettered")]
    TaskDeadLettered,
}

impl Topic {
    pub const ALL: [Self; 5] = [
        Self::MissionFailed,
        Self::PoolExhausted,
        Self::ExtractionComplete,
        Self::ExtractionShort,
        Self::TaskDeadLettered,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissionFailed => "mission.failed",
            Self::PoolExhausted => "pool.exhausted",
            Self::ExtractionComplete => "extraction.complete",
            Self::ExtractionShort => "extraction.short",
            Self::TaskDeadLettered => "task.dead_lettered",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no event: there are {known}", known = Topic::ALL.map(Topic::as_str).join(", "))]
pub struct UnknownTopic(pub String);

impl FromStr for Topic {
    type Err = UnknownTopic;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|topic| topic.as_str() == text);
        found.ok_or_else(|| UnknownTopic(text.to_owned()))
    }
}

/// A row of `lavra.webhooks`, without what is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Webhook {
    pub id: WebhookId,
    pub name: String,
    /// The scheme and the host; the rest often is a credential.
    pub url: String,
    pub events: Vec<Topic>,
    pub active: bool,
    pub created_at: Timestamp,
    /// When it last took something.
    pub last_ok_at: Option<Timestamp>,
    /// Why it did not since.
    pub last_error: Option<String>,
    /// What happened before is not told.
    #[serde(skip)]
    pub since: Timestamp,
    /// The name under which its address and its secret are sealed; another one when they change.
    #[serde(skip)]
    pub sealed: String,
}

impl Webhook {
    /// Whether it is to be told of something that happened then.
    pub fn wants(&self, topic: Topic, at: Timestamp) -> bool {
        self.active && self.events.contains(&topic) && at >= self.since
    }
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// The same for everyone who is told, and for every attempt.
    pub id: String,
    /// A [`Topic`], or `ping`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened.
    pub created_at: Timestamp,
    pub data: Value,
    /// A sentence for people.
    pub text: String,
}
