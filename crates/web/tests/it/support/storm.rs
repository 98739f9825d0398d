//! Many requests, of which none may be a failure of the server, lead elsewhere, or come back as a script.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use tokio::task::JoinSet;

const AT_ONCE: usize = 16;
const PATIENCE: Duration = Duration::from_secs(25);

/// Requests, some at a time, with what is wrong with their answers.
#[derive(Default)]
pub(crate) struct Storm {
    under_way: JoinSet<Option<String>>,
    sent: usize,
    wrong: Vec<String>,
}

impl Storm {
    pub(crate) async fn send(&mut self, request: reqwest::RequestBuilder, what: String) {
        if self.under_way.len() >= AT_ONCE {
            self.take().await;
        }
        self.sent += 1;
        self.under_way.spawn(async move {
            let response = request.timeout(PATIENCE).send().await;
            let response = response.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let wrong = wrong_with(response).await?;
            Some(format!("{what}: {wrong}"))
        });
    }

    async fn take(&mut self) -> bool {
        let Some(ended) = self.under_way.join_next().await else { return false };
        self.wrong.extend(ended.unwrap());
        true
    }

    /// Waits for all of them, which are so many at least.
    pub(crate) async fn end(mut self, least: usize) {
        while self.take().await {}
        assert!(self.wrong.is_empty(), "{} are wrong: {:#?}", self.wrong.len(), self.wrong);
        assert!(self.sent >= least, "{}", self.sent);
    }
}

async fn wrong_with(response: Response) -> Option<String> {
    let status = response.status();
    let header = |name: HeaderName| response.headers().get(name).cloned();
    let (kind, place) = (header(CONTENT_TYPE), header(LOCATION));
    let text = response.text().await.unwrap();
    if status.is_server_error() {
        // A page says it in the middle.
        let said = text.split_once("said-big").map_or(&*text, |(_, said)| said);
        return Some(format!("{status} {}", said.chars().take(300).collect::<String>()));
    }
    let leads_here = |place: &HeaderValue| {
        place.as_bytes().starts_with(b"/") && !place.as_bytes().starts_with(b"//")
    };
    if let Some(place) = place.filter(|place| !leads_here(place)) {
        return Some(format!("leads to {place:?}"));
    }
    let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    (is_page && text.contains("<script>alert")).then(|| format!("a script came back: {text}"))
}
