//! A receiver on this machine, which checks the signature of everything it gets.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use lavra_notify::sign;
use serde_json::Value;
use tokio::net::TcpListener;

use super::SECRET;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) is_signed: bool,
    pub(crate) answered: u16,
    pub(crate) at: Instant,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn event(&self) -> &str {
        self.body["id"].as_str().unwrap()
    }
}

/// What it answers next: a status, and how long to wait before it may be asked again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer(pub(crate) u16, pub(crate) Option<u64>);

#[derive(Clone, Debug, Default)]
struct Book {
    requests: Arc<Mutex<Vec<Request>>>,
    answers: Arc<Mutex<Vec<Answer>>>,
    slowness: Arc<Mutex<Duration>>,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    book: Book,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Receiver {
    /// Answers with these statuses in turn, and then with 204.
    pub(crate) async fn start(answers: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "http://{}/hooks/path-s3cret?token=query-s3cret",
            listener.local_addr().unwrap()
        );
        let book = Book::default();
        *book.answers.lock().unwrap() =
            answers.iter().rev().map(|status| Answer(*status, None)).collect();
        let router = Router::new().fallback(take).with_state(book.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, book, serving }
    }

    pub(crate) fn then(&self, answer: Answer) {
        self.book.answers.lock().unwrap().insert(0, answer);
    }

    pub(crate) fn takes_its_time(&self, time: Duration) {
        *self.book.slowness.lock().unwrap() = time;
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.book.requests.lock().unwrap().clone()
    }

    /// The events that it took, each as often as it took it.
    pub(crate) fn taken(&self) -> Vec<String> {
        let requests = self.requests();
        let taken = requests.iter().filter(|request| (200..300).contains(&request.answered));
        let mut events: Vec<String> = taken.map(|request| request.event().to_owned()).collect();
        events.sort();
        events
    }
}

async fn take(State(book): State<Book>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let slowness = *book.slowness.lock().unwrap();
    tokio::time::sleep(slowness).await;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let timestamp: i64 = text("lavra-timestamp").parse().unwrap_or(0);
    let is_signed = text("lavra-signature") == sign(SECRET, timestamp, &body);
    let Answer(status, pause) = book.answers.lock().unwrap().pop().unwrap_or(Answer(204, None));
    book.requests.lock().unwrap().push(Request {
        path: uri.to_string(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        headers,
        is_signed,
        answered: status,
        at: Instant::now(),
    });
    let status = StatusCode::from_u16(status).unwrap();
    let mut response = (status, "what a receiver says: body-s3cret").into_response();
    if let Some(seconds) = pause {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if status.is_redirection() {
        let elsewhere = "/elsewhere".parse().unwrap();
        response.headers_mut().insert(header::LOCATION, elsewhere);
    }
    response
}
