//! The task type `extract_export`. Its result names the files.

use std::sync::Arc;

use lavra_db::Database;
use lavra_tasks::{Artefacts, Context, Failure, Handler, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{extracted, failure, scope_of, share, source_of, until_stopped};
use crate::error::{Error, Result};
use crate::export::{Export, Format, Report};
use crate::month::Month;
use crate::source::Source;

/// What an `extract_export` task is to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportOrder {
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Month>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Month>,
    #[serde(default)]
    pub endpoints: Vec<String>,
    pub format: Format,
    /// A directory or `s3://bucket/below`; on a server, a name below its artefacts.
    pub out: String,
    /// Also what is there of tasks that are not complete.
    #[serde(default)]
    pub partial: bool,
}

impl ExportOrder {
    /// The source that is meant.
    pub fn source(&self) -> Result<Source> {
        source_of(&self.source, self.definition.as_deref(), None)
    }
}

/// Where exports may be put.
#[derive(Clone, Debug)]
pub enum Exports {
    /// Anywhere: who asks is who runs the process.
    Anywhere,
    /// Below a directory or bucket: who asks may be anyone with access to the interface.
    Below(String),
}

impl Exports {
    fn place(&self, out: &str) -> Result<String> {
        let Self::Below(root) = self else { return Ok(out.to_owned()) };
        Self::check_name(out)?;
        Ok(format!("{}/{out}", root.trim_end_matches('/')))
    }

    /// What a server takes as the place of an export.
    pub fn check_name(out: &str) -> Result<()> {
        let is_plain = |part: &str| {
            !part.starts_with('.')
                && !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-.=".contains(c))
        };
        if out.split('/').all(is_plain) {
            Ok(())
        } else {
            Err(Error::Invalid(format!(
                "out {out:?}: a server exports below its artefacts; this is a name of letters, \
                 digits, _, -, . and =, with / between its parts"
            )))
        }
    }
}

#[derive(Clone, Debug)]
pub struct ExtractExport {
    database: Database,
    exports: Exports,
}

impl ExtractExport {
    pub fn new(database: Database, exports: Exports) -> Self {
        Self { database, exports }
    }

    /// Does it, in a task or not; `tell` hears how many files of how many are written.
    pub async fn export(
        &self,
        order: &ExportOrder,
        stop: CancellationToken,
        tell: impl Fn(usize, usize),
    ) -> Result<Report> {
        let source = order.source()?;
        let scope = scope_of(&source, order.from, order.to, &order.endpoints)?;
        let store = extracted(&self.database, &source).await?;
        let place = self.exports.place(&order.out)?;
        let to = Artefacts::open(&place).map_err(|error| Error::Invalid(error.to_string()))?;
        let export = Export {
            store,
            source: Arc::new(source),
            to,
            format: order.format,
            partial: order.partial,
            stop,
        };
        export.run(&scope, tell).await
    }
}

impl Handler for ExtractExport {
    type Input = ExportOrder;

    const KIND: &'static str = "extract_export";

    async fn run(&self, order: ExportOrder, context: Context) -> Outcome {
        let stop = CancellationToken::new();
        let tell = |done, all| {
            context.progress(share(done, all), format!("Exporting files {done}/{all}"));
        };
        let exporting = self.export(&order, stop.clone(), tell);
        let report = until_stopped(exporting, stop, &context).await.map_err(failure)?;
        if report.is_interrupted {
            return Err(Failure::Stopped);
        }
        Ok(Some(json!(report)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_exports_below_its_artefacts_only() {
        let below = Exports::Below("s3://lake/lavra/".into());
        assert_eq!(below.place("pncp/2024").unwrap(), "s3://lake/lavra/pncp/2024");
        for out in ["", "/etc", "../x", "a/../../b", "s3://other", "a//b", "a b", "a/.ssh", "a\0b"]
        {
            assert!(below.place(out).is_err(), "{out}");
        }
        assert_eq!(Exports::Anywhere.place("../x").unwrap(), "../x");
    }
}
