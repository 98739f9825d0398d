//! Many requests, of which none may be a failure of the server, lead elsewhere, or come back as a script.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use tokio::task::JoinSet;

const AT_ONCE: usize = 16;

/// Requests, some at a time.
#[derive(Default)]
pub(crate) struct Storm {
    under_way: JoinSet<()>,
    sent: usize,
}

impl Storm {
    pub(crate) async fn send(&mut self, request: reqwest::RequestBuilder, what: String) {
        if self.under_way.len() >= AT_ONCE {
            self.under_way.join_next().await.unwrap().unwrap();
        }
        self.sent += 1;
        self.under_way.spawn(async move {
            let response = request.timeout(Duration::from_secs(25)).send().await;
            let response = response.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let status = response.status();
            let header = |name: HeaderName| response.headers().get(name).cloned();
            let (kind, place) = (header(CONTENT_TYPE), header(LOCATION));
            let text = response.text().await.unwrap();
            assert!(!status.is_server_error(), "{what}: {status} {text}");
            let leads_here = |place: &HeaderValue| {
                place.as_bytes().starts_with(b"/") && !place.as_bytes().starts_with(b"//")
            };
            assert!(place.as_ref().is_none_or(leads_here), "{what}: to {place:?}");
            let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
            assert!(!is_page || !text.contains("<script>alert"), "{what}: {text}");
        });
    }

    /// Waits for all of them, which are so many at least.
    pub(crate) async fn end(mut self, least: usize) {
        while let Some(ended) = self.under_way.join_next().await {
            ended.unwrap();
        }
        assert!(self.sent >= least, "{}", self.sent);
    }
}
