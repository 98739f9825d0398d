//! One who calls the server, and what it answers.

use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) http: reqwest::Client,
    pub(crate) base: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Client {
    pub(crate) fn new(base: String) -> Self {
        let _only_the_first_counts = rustls::crypto::ring::default_provider().install_default();
        Self { http: reqwest::Client::new(), base }
    }

    /// One who calls from another address of this machine, and follows no redirect.
    pub(crate) fn at_address(&self, address: [u8; 4]) -> Self {
        let http = reqwest::Client::builder()
            .local_address(std::net::IpAddr::from(address))
            .redirect(reqwest::redirect::Policy::none());
        Self { http: http.build().unwrap(), base: self.base.clone() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Reply {
        Reply::read(request.send().await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// A POST with neither body nor type.
    pub(crate) async fn ask(&self, path: &str) -> Reply {
        self.send(self.request(Method::POST, path)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::PUT, path).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// Makes a task and returns its id.
    pub(crate) async fn create(&self, kind: &str, payload: &Value) -> String {
        let reply = self.post("/tasks", &json!({ "type": kind, "payload": payload })).await;
        reply.expect(201)["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn task(&self, id: &str) -> Value {
        self.get(&format!("/tasks/{id}")).await.expect(200)
    }

    /// Claims one task of the type; there must be one.
    pub(crate) async fn claim(&self, worker: Uuid, kind: &str) -> Value {
        let wish = json!({ "worker": worker, "types": [kind] });
        let answer = self.post("/tasks:claim", &wish).await.expect(200);
        assert_eq!(answer["tasks"].as_array().unwrap().len(), 1, "{answer}");
        answer["tasks"][0].clone()
    }

    pub(crate) async fn report(&self, task: &Value, verb: &str, more: Value) -> Reply {
        let mut body = json!({ "token": task["token"] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post(&format!("/tasks/{}:{verb}", task["id"].as_str().unwrap()), &body).await
    }
}

impl Reply {
    pub(crate) async fn read(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, text: response.text().await.unwrap() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// The problem that an answer must be.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        // People get it as a page.
        if self.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            assert_eq!(self.status.as_u16(), status, "{self:?}");
            assert!(self.text.contains(&format!("#{code}\"")), "{self:?}");
            return Value::Null;
        }
        let body = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status);
        assert_eq!(body["type"], format!("/docs/errors#{code}"));
        for name in ["title", "detail"] {
            assert!(body[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {body}");
        }
        body
    }

    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.get(HeaderName::from_static(name)).and_then(|value| value.to_str().ok())
    }
}
