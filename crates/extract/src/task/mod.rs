//! Task types: `extract`, whose tasks are runs; `extract_audit` and `extract_export`.

mod audit;
mod export;
mod extract;

use std::sync::Arc;

use lavra_db::Database;
use lavra_tasks::{Context, Failure};
use tokio_util::sync::CancellationToken;
use url::Url;

pub use self::audit::{AuditOrder, ExtractAudit};
pub use self::export::{ExportOrder, Exports, ExtractExport};
pub use self::extract::{Extract, Order, Told};
use crate::error::{Error, Result};
use crate::month::Month;
use crate::plan::names;
use crate::source::Source;
use crate::store::{Scope, Store};
use crate::{has_tables, store_of};

/// The source that is meant: one that is built in, or the one of `definition`; somewhere else, if
/// `base_url` says so.
fn source_of(name: &str, definition: Option<&str>, base_url: Option<&str>) -> Result<Source> {
    let mut source = match definition {
        Some(text) => Source::parse(text)?,
        None => Source::built_in(name).ok_or_else(|| {
            let known = Source::built_in_names().join(", ");
            Error::Invalid(format!("there is no source {name:?}; built in: {known}"))
        })??,
    };
    if source.name != name {
        let text = format!("the definition is of {:?}, not {name:?}", source.name);
        return Err(Error::Invalid(text));
    }
    if let Some(text) = base_url {
        source.base_url = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| {
                Error::Invalid(format!("base_url {text:?} is no http URL: as in https://host/api"))
            })?;
    }
    Ok(source)
}

/// A part of what is in the table; all of it where nothing is said.
pub fn scope_of(
    source: &Source,
    from: Option<Month>,
    to: Option<Month>,
    endpoints: &[String],
) -> Result<Scope> {
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        let text = format!("from {from} to {to} is no time: it ends before it begins");
        return Err(Error::Invalid(text));
    }
    Ok(Scope {
        endpoints: names(source, endpoints)?,
        from: from.unwrap_or(Month::FIRST).first(),
        to: to.unwrap_or(Month::LAST).last(),
    })
}

/// The tables of a source, where something of it was extracted.
async fn extracted(database: &Database, source: &Source) -> Result<Arc<dyn Store>> {
    if has_tables(database, &source.name).await? {
        return Ok(store_of(database, &source.name));
    }
    Err(Error::NothingExtracted(source.name.clone()))
}

/// Work that can be told to stop, until it ends.
async fn until_stopped<T>(
    work: impl Future<Output = T>,
    stop: CancellationToken,
    context: &Context,
) -> T {
    tokio::pin!(work);
    tokio::select! {
        ended = &mut work => ended,
        _ = context.stopped() => {
            stop.cancel();
            work.await
        }
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Database(error) if error.is_transient() => Failure::retry(error.to_string()),
        error => Failure::permanent(error.to_string()),
    }
}

fn share(done: usize, all: usize) -> i16 {
    (done * 100 / all.max(1)).min(99) as i16
}
