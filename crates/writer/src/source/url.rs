//! Sources behind a URL. Redirects are followed by hand, so that each is judged like the first one.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Response, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::Opened;
use super::access::{self, Inside, Judge, Names};
use crate::config::Config;
use crate::decode::Encoding;
use crate::failure::{Code, Failure};

const REDIRECTS: usize = 3;
/// Pieces of a body that wait to be read.
const AHEAD: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct Fetcher {
    client: reqwest::Client,
    config: Arc<Config>,
}

impl Fetcher {
    pub(super) fn new(config: Arc<Config>, names: Arc<dyn Names>) -> Result<Self, Failure> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(lavra_db::tls())
            .user_agent(concat!("lavra/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(config.timing.connect)
            .dns_resolver(Judge { config: Arc::clone(&config), names })
            .redirect(redirect::Policy::none())
            // A proxy of the environment would connect to what was never judged.
            .no_proxy()
            .http1_only()
            // Each request is judged for itself.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        Ok(Self { client, config })
    }

    pub(super) async fn open(
        &self,
        url: &Url,
        headers: &BTreeMap<String, SecretString>,
    ) -> Result<Opened, Failure> {
        let response = self.follow(url.clone(), sent(headers)).await?;
        let encoding = response.headers().get(CONTENT_ENCODING);
        let encoding = match encoding.map(HeaderValue::to_str) {
            None => Encoding::of_name(response.url().path()),
            Some(text) => Encoding::of_header(text.unwrap_or("?"))?,
        };
        let limit = self.config.limits.bytes;
        if response.content_length().is_some_and(|length| length > limit) {
            return Err(Failure::storage(format!("the source is longer than {limit} bytes")));
        }
        let (sender, pieces) = mpsc::channel(AHEAD);
        let deadline = Instant::now() + self.config.timing.source;
        tokio::spawn(pump(response, sender, self.config.timing.silence, deadline));
        Ok(Opened {
            bytes: Box::new(Pieces { arriving: pieces, rest: Bytes::new(), is_over: false }),
            encoding,
        })
    }

    async fn follow(&self, mut url: Url, mut headers: HeaderMap) -> Result<Response, Failure> {
        for _ in 0..=REDIRECTS {
            if let Some(why) = access::refusal(&self.config.access, &url) {
                return Err(Failure::storage(format!("the source may not be read: {why}")));
            }
            let request = self.client.get(url.clone()).headers(headers.clone()).send();
            let response = match timeout(self.config.timing.silence, request).await {
                Ok(answer) => answer.map_err(|error| unreachable(&error))?,
                Err(_) => return Err(Failure::storage("the source does not answer").passing()),
            };
            let status = response.status();
            if !status.is_redirection() {
                return if status == StatusCode::OK { Ok(response) } else { Err(refused(status)) };
            }
            let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let next = place.and_then(|place| url.join(place).ok());
            let next = next.ok_or_else(|| Failure::storage("the source redirects to nowhere"))?;
            if next.origin() != url.origin() {
                // What was meant for one host is not told to another.
                headers = sent(&BTreeMap::new());
            }
            url = next;
        }
        Err(Failure::storage(format!("the source redirects more than {REDIRECTS} times")))
    }
}

fn sent(headers: &BTreeMap<String, SecretString>) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert(ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5"));
    map.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, zstd, br"));
    for (name, value) in headers {
        // They were looked at when the order came.
        if let (Ok(name), Ok(mut value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value.expose_secret()))
        {
            value.set_sensitive(true);
            map.insert(name, value);
        }
    }
    map
}

fn refused(status: StatusCode) -> Failure {
    let text = format!("the source answers {}", status.as_u16());
    match status.as_u16() {
        401 | 403 => Failure::new(Code::Credentials, text),
        408 | 425 | 429 | 500..=599 => Failure::storage(text).passing(),
        _ => Failure::storage(text),
    }
}

/// The innermost reason, without the URL.
fn unreachable(error: &reqwest::Error) -> Failure {
    let mut reason: &dyn std::error::Error = error;
    loop {
        if reason.is::<Inside>() {
            return Failure::storage(format!("the source may not be read: {reason}"));
        }
        match reason.source() {
            Some(source) => reason = source,
            None => break,
        }
    }
    Failure::storage(format!("the source cannot be reached: {reason}")).passing()
}

/// Carries a body to the thread that reads it, as fast as that goes on.
async fn pump(
    mut response: Response,
    sender: mpsc::Sender<io::Result<Bytes>>,
    silence: std::time::Duration,
    deadline: Instant,
) {
    loop {
        let soon = deadline.min(Instant::now() + silence);
        let piece = match timeout_at(soon, response.chunk()).await {
            // Nothing marks the end: a pump that is gone without it was cut itself.
            Ok(Ok(None)) => Ok(Bytes::new()),
            Ok(Ok(Some(piece))) if piece.is_empty() => continue,
            Ok(Ok(Some(piece))) => Ok(piece),
            Ok(Err(error)) => {
                let failure = unreachable(&error);
                Err(io::Error::other(Failure {
                    message: failure.message.replace("cannot be reached", "was cut"),
                    ..failure
                }))
            }
            Err(_) => Err(io::Error::other(Failure::storage("the source fell silent").passing())),
        };
        let is_last = piece.as_ref().map_or(true, Bytes::is_empty);
        if sender.send(piece).await.is_err() || is_last {
            return;
        }
    }
}

/// A body as it arrives, for a thread that may wait.
struct Pieces {
    arriving: mpsc::Receiver<io::Result<Bytes>>,
    rest: Bytes,
    is_over: bool,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && !self.is_over {
            self.rest = match self.arriving.blocking_recv() {
                Some(piece) => piece?,
                None => {
                    let text = "the source was given up";
                    return Err(io::Error::other(Failure::storage(text).passing()));
                }
            };
            self.is_over = self.rest.is_empty();
        }
        let length = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
