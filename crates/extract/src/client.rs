//! Fetching over HTTP. A trait, so that a simulation can answer without sockets.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use lavra_tasks::outbound;
use reqwest::redirect;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use crate::error::{Error, Result};
use crate::reading::{Reply, Trouble};
use crate::source::{Header, Source};

#[async_trait]
pub trait Fetch: Send + Sync + Debug {
    async fn fetch(&self, url: &Url) -> Result<Reply, Trouble>;
}

/// What fetches from the real world.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    timeout: Duration,
    max_body: usize,
    /// Who has a large body in memory.
    large: Arc<Semaphore>,
    /// The length of the last body.
    last: AtomicUsize,
}

/// Bodies above this are in memory one at a time, from their first byte to their storage.
pub(crate) const LARGE: usize = 8 << 20;

impl Client {
    /// `private_allowed`: whether the source may be an internal address.
    pub fn new(source: &Source, private_allowed: bool) -> Result<Self> {
        if !private_allowed && let Some(refusal) = outbound::refusal_of(&source.base_url) {
            return Err(Error::Invalid(refusal));
        }
        Self::built(source, outbound::client(private_allowed))
    }

    /// A client all of whose requests go through `proxy`, which is who decides where they may go.
    pub fn through(source: &Source, proxy: reqwest::Proxy) -> Result<Self> {
        Self::built(source, outbound::client(true).proxy(proxy))
    }

    fn built(source: &Source, builder: reqwest::ClientBuilder) -> Result<Self> {
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("accept", reqwest::header::HeaderValue::from_static("application/json"));
        for (name, value) in &source.request.headers {
            let (name, value) = header(name, value)?;
            headers.insert(name, value);
        }
        let http = builder
            .default_headers(headers)
            .redirect(redirect::Policy::custom(at_home))
            .connect_timeout(source.limits.connect)
            .http1_only()
            .build()
            .map_err(|error| Error::Invalid(format!("no HTTP client can be made: {error}")))?;
        Ok(Self {
            http,
            timeout: source.limits.timeout,
            max_body: source.limits.max_body,
            large: Arc::new(Semaphore::new(1)),
            last: AtomicUsize::new(0),
        })
    }

    async fn whole(&self, url: &Url) -> Result<Reply, Trouble> {
        let mut response = self.http.get(url.clone()).send().await.map_err(|e| cut(&e))?;
        let too_large = Trouble::TooLarge { limit: self.max_body };
        let announced = response.content_length().unwrap_or(0) as usize;
        if announced > self.max_body {
            return Err(too_large);
        }
        let headers = response.headers().iter().map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let (status, headers) = (response.status().as_u16(), headers.collect());
        let expected = if announced > 0 { announced } else { self.last.load(Ordering::Relaxed) };
        let mut body = Vec::with_capacity(expected.min(LARGE));
        let mut turn = None;
        while let Some(chunk) = response.chunk().await.map_err(|error| cut(&error))? {
            let length = body.len() + chunk.len();
            if length > self.max_body {
                return Err(too_large);
            }
            if length > LARGE && turn.is_none() {
                turn = Arc::clone(&self.large).acquire_owned().await.ok();
            }
            body.extend_from_slice(&chunk);
        }
        // Pages are about as long as the one before; with a little room, none is moved as it grows.
        self.last.store(body.len() + body.len() / 8, Ordering::Relaxed);
        let body = match turn {
            None => body.into(),
            Some(turn) => Bytes::from_owner(Large { body, _turn: turn }),
        };
        Ok(Reply { status, headers, body })
    }
}

/// A body that has its turn until nobody needs it any more.
struct Large {
    body: Vec<u8>,
    _turn: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[async_trait]
impl Fetch for Client {
    async fn fetch(&self, url: &Url) -> Result<Reply, Trouble> {
        match tokio::time::timeout(self.timeout, self.whole(url)).await {
            Ok(answer) => answer,
            Err(_) => Err(Trouble::Timeout(self.timeout)),
        }
    }
}

const MAX_REDIRECTS: usize = 5;

/// Follows a redirect within the same server. To another one the source's headers would go along, with the
/// keys in them: that redirect is the answer.
fn at_home(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let is_home = attempt.previous().first().is_some_and(|asked| {
        let to = attempt.url();
        asked.origin() == to.origin()
            || (asked.scheme() == "http" && to.scheme() == "https" && asked.host() == to.host())
    });
    if is_home && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// The innermost reason, without the URL, which may carry what nobody should read.
fn cut(error: &reqwest::Error) -> Trouble {
    if error.is_timeout() && error.is_connect() {
        return Trouble::Connection("no connection in time".into());
    }
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    Trouble::Connection(reason.to_string())
}

fn header(
    name: &str,
    value: &Header,
) -> Result<(reqwest::header::HeaderName, reqwest::header::HeaderValue)> {
    let text = match value {
        Header::Plain(text) => text.clone(),
        Header::Variable(variable) => std::env::var(variable)
            .map_err(|_| Error::Invalid(format!("{variable} is not set: the source needs it")))?,
    };
    let wrong = |_| Error::Invalid(format!("the header {name} cannot be sent as it is"));
    let mut value =
        reqwest::header::HeaderValue::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    value.set_sensitive(true);
    let name = name.parse().map_err(|_| wrong(String::new()))?;
    Ok((name, value))
}
