//! The task type `extract_audit`. Its result is the report, whatever was found.

use std::sync::Arc;

use lavra_db::Database;
use lavra_tasks::{Context, Failure, Handler, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{extracted, failure, scope_of, share, source_of, until_stopped};
use crate::Settings;
use crate::audit::{Against, Audit, Report};
use crate::client::Client;
use crate::error::Result;
use crate::host::Host;
use crate::month::Month;
use crate::source::Source;

/// What an `extract_audit` task is to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditOrder {
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Month>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Month>,
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// Asks the source for its totals anew.
    #[serde(default)]
    pub against_source: bool,
    /// Marks what is damaged, so that the next run fetches it again.
    #[serde(default)]
    pub repair: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
}

impl AuditOrder {
    /// The source that is meant.
    pub fn source(&self) -> Result<Source> {
        source_of(&self.source, self.definition.as_deref(), self.base_url.as_deref())
    }
}

#[derive(Clone, Debug)]
pub struct ExtractAudit {
    database: Database,
    settings: Settings,
    private_allowed: bool,
}

impl ExtractAudit {
    pub fn new(database: Database, settings: Settings, private_allowed: bool) -> Self {
        Self { database, settings, private_allowed }
    }

    /// Does it, in a task or not; `tell` hears how many tasks of how many are looked at.
    pub async fn audit(
        &self,
        order: &AuditOrder,
        stop: CancellationToken,
        tell: impl Fn(usize, usize),
    ) -> Result<Report> {
        let source = order.source()?;
        let scope = scope_of(&source, order.from, order.to, &order.endpoints)?;
        let store = extracted(&self.database, &source).await?;
        let against = if order.against_source {
            let client = Arc::new(Client::new(&source, self.private_allowed)?);
            let cap = source.limits.in_flight;
            let host = Host::shared(&source.base_url, cap, self.settings.breaker);
            Some(Against { client, host })
        } else {
            None
        };
        let audit = Audit { store, source: Arc::new(source), stop, against, repair: order.repair };
        audit.run(&scope, tell).await
    }
}

impl Handler for ExtractAudit {
    type Input = AuditOrder;

    const KIND: &'static str = "extract_audit";

    async fn run(&self, order: AuditOrder, context: Context) -> Outcome {
        let stop = CancellationToken::new();
        let tell = |done, all| {
            context.progress(share(done, all), format!("Auditing tasks {done}/{all}"));
        };
        let auditing = self.audit(&order, stop.clone(), tell);
        let report = until_stopped(auditing, stop, &context).await.map_err(failure)?;
        if context.is_stopping() {
            return Err(Failure::Stopped);
        }
        Ok(Some(json!(report)))
    }
}
