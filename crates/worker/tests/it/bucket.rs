//! Results in an S3-compatible bucket: a small one of our own, behind a socket.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use jiff::civil::date;
use lavra_fleet::api::JobStatus;
use lavra_fleet::code::{Blame, ErrorCode};
use lavra_fleet::machine::worker::data_url;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::child::Process;
use crate::support::{World, mission};

#[derive(Clone, Default)]
struct Bucket {
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    parts: Arc<Mutex<BTreeMap<String, BTreeMap<u32, Bytes>>>>,
    is_closed: Arc<AtomicBool>,
}

async fn answer(State(bucket): State<Bucket>, method: Method, uri: Uri, body: Bytes) -> Response {
    let (path, query) = (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned());
    if bucket.is_closed.load(Ordering::Relaxed) && method != Method::GET {
        return (StatusCode::FORBIDDEN, "<Error><Code>AccessDenied</Code></Error>").into_response();
    }
    let named = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    match (method.as_str(), named("partNumber"), named("uploadId")) {
        ("POST", None, None) => {
            "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
                .into_response()
        }
        ("PUT", Some(number), Some(_)) => {
            let mut parts = bucket.parts.lock();
            parts.entry(path).or_default().insert(number.parse().unwrap(), body);
            [("etag", "\"part\"")].into_response()
        }
        ("POST", None, Some(_)) => {
            let parts = bucket.parts.lock().remove(&path).unwrap_or_default();
            let whole = parts.into_values().flatten().collect();
            bucket.objects.lock().insert(path, whole);
            "<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>"
                .into_response()
        }
        ("GET", None, None) => match bucket.objects.lock().get(&path) {
            Some(body) => body.clone().into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

#[tokio::test]
async fn results_are_put_in_a_bucket_and_a_bucket_that_refuses_is_said() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let bucket = Bucket::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(bucket.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let variables = [
        Process::storage("s3://ads-bucket/below"),
        ("AWS_ENDPOINT", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
    ];
    let process = Process::with(&world, place.path(), &variables);
    let client = &process.client;
    client.ready(&world, "http").await;
    let order = mission("mis_1", date(2025, 3, 3), 3, "all", &["pt"]);
    let id = client.start(&order).await;
    assert_eq!(client.until_over(&id).await.status, JobStatus::Completed);
    let url = data_url(&format!("{endpoint}/ads-bucket/below"), &id);
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let body: Value = plain.get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(body, json!({ "ads": world.truth(&order) }));

    bucket.is_closed.store(true, Ordering::Relaxed);
    let id = client.start(&mission("mis_2", date(2025, 3, 9), 1, "video", &["pt"])).await;
    let job = client.until_over(&id).await;
    assert_eq!((job.status, job.error_code), (JobStatus::Failed, Some(ErrorCode::Error401)));
    assert_eq!(job.blame, Some(Blame::Storage));
}
