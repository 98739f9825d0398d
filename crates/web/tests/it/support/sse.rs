//! A reader of server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use super::Client;

pub(crate) struct Stream {
    response: Response,
    text: String,
    ready: VecDeque<Message>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: Option<String>,
    pub(crate) data: Option<Value>,
    pub(crate) is_comment: bool,
}

impl Client {
    pub(crate) async fn stream(&self, path: &str, last: Option<&str>) -> Stream {
        let mut request = self.request(reqwest::Method::GET, path);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        Stream { response, text: String::new(), ready: VecDeque::new() }
    }
}

impl Stream {
    /// The next event with data; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            let message = self.any().await?;
            if message.data.is_some() {
                return Some(message);
            }
        }
    }

    /// The next message of any kind.
    pub(crate) async fn any(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let chunk = tokio::time::timeout(Duration::from_secs(40), self.response.chunk());
            let chunk = chunk.await.expect("the stream is silent").unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                self.ready.push_back(Message::read(block));
                self.text = String::from(rest);
            }
        }
    }

    pub(crate) async fn take(&mut self, count: usize) -> Vec<Message> {
        let mut messages = Vec::with_capacity(count);
        while messages.len() < count {
            let next = self.next().await;
            messages.push(next.unwrap_or_else(|| panic!("only {} events", messages.len())));
        }
        messages
    }

    /// All that comes until the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }
}

impl Message {
    fn read(block: &str) -> Self {
        let field = |name: &str| {
            let lines = block.lines().filter_map(|line| line.strip_prefix(name));
            lines.map(str::trim).next().map(str::to_owned)
        };
        let data = field("data:").map(|data| serde_json::from_str(&data).unwrap());
        Self { id: field("id:"), data, is_comment: block.starts_with(':') }
    }

    pub(crate) fn id(&self) -> &str {
        self.id.as_deref().unwrap()
    }

    pub(crate) fn status(&self) -> &str {
        self.data.as_ref().unwrap()["status"].as_str().unwrap()
    }
}
