//! Where elements come from: a URL, the request itself, or a file.

mod access;
mod file;
mod url;

use std::io::{Cursor, Read};
use std::sync::Arc;

use crate::config::{Config, Limits};
use crate::decode::{self, Encoding};
use crate::failure::{Code, Failure};
use crate::order::{Order, Source};

pub use access::{Names, SystemNames};
pub(crate) use url::Fetcher;

/// Opens sources, as far as they may be.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    config: Arc<Config>,
    fetcher: Fetcher,
}

/// A source before it is unpacked.
pub(crate) struct Opened {
    bytes: Box<dyn Read + Send>,
    encoding: Option<Encoding>,
}

impl Opened {
    /// Its text; blocks until the first bytes are there.
    pub(crate) fn text(self, limits: &Limits) -> Result<Box<dyn Read + Send>, Failure> {
        decode::unpacked(self.bytes, self.encoding, limits)
    }
}

impl Sources {
    pub(crate) fn new(config: Arc<Config>, names: Arc<dyn Names>) -> Result<Self, Failure> {
        let fetcher = Fetcher::new(Arc::clone(&config), names)?;
        Ok(Self { config, fetcher })
    }

    /// Why an order is refused before anything is looked up.
    pub(crate) fn refusal(&self, order: &Order) -> Option<(&'static str, String)> {
        match &order.source {
            Source::Url(url) => {
                access::refusal(&self.config.access, url).map(|why| ("source.url", why))
            }
            Source::File(_) if self.config.access.directories.is_empty() => {
                Some(("source.type", "no directory was opened to this writer".to_owned()))
            }
            Source::Inline(_) | Source::File(_) => None,
        }
    }

    pub(crate) async fn open(&self, order: &Order) -> Result<Opened, Failure> {
        match &order.source {
            Source::Url(url) => self.fetcher.open(url, &order.headers).await,
            Source::Inline(json) => {
                Ok(Opened { bytes: Box::new(Cursor::new(json.clone())), encoding: None })
            }
            Source::File(path) => {
                let (directories, path) = (self.config.access.directories.clone(), path.clone());
                let opened = tokio::task::spawn_blocking(move || file::open(&directories, &path));
                opened.await.map_err(|error| Failure::new(Code::Internal, error.to_string()))?
            }
        }
    }
}
