//! What the world tells of itself, below `/_world/`. None of it fails, and none of it is counted.

use std::fmt::Display;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response};
use serde::Serialize;
use url::form_urlencoded;

use super::body::Outgoing;
use super::plain;
use crate::faults::Faults;
use crate::reply::Reply;
use crate::truth::Truth;
use crate::world::World;

/// The most bytes that switches can take.
const LONGEST: usize = 1 << 20;
/// Lines of a truth that are sent together.
const TOGETHER: u64 = 256;

pub(super) async fn respond(world: &World, request: Request<Incoming>) -> Response<Outgoing> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    match (method, path.as_str()) {
        (Method::GET, "/_world/stats") => json(&world.stats()),
        (Method::GET, "/_world/faults") => json(&world.faults()),
        (Method::PUT, "/_world/faults") => match set(world, request).await {
            Ok(()) => json(&world.faults()),
            Err(reason) => error(400, &reason),
        },
        (Method::GET, "/_world/truth") => truth(world, request.uri().query().unwrap_or_default()),
        (_, "/_world/stats" | "/_world/faults" | "/_world/truth") => {
            error(405, &"GET, or PUT for faults")
        }
        _ => error(404, &"there are /_world/stats, /_world/faults and /_world/truth"),
    }
}

pub(crate) fn json(value: &impl Serialize) -> Response<Outgoing> {
    let body = serde_json::to_vec(value).unwrap_or_default();
    plain(Reply::json(200, body))
}

pub(crate) fn error(status: u16, reason: &impl Display) -> Response<Outgoing> {
    let body = serde_json::json!({ "error": reason.to_string() });
    plain(Reply::json(status, body.to_string().into_bytes()))
}

async fn set(world: &World, request: Request<Incoming>) -> Result<(), String> {
    let body = read(request.into_body()).await?;
    let faults: Faults = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    world.set_faults(faults).map_err(|error| error.to_string())
}

pub(crate) async fn read(mut body: Incoming) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(frame) =
        std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await
    {
        let frame = frame.map_err(|error| error.to_string())?;
        bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
        if bytes.len() > LONGEST {
            return Err(format!("longer than {LONGEST} bytes"));
        }
    }
    Ok(bytes)
}

/// The natural key and hash of every record, a line of JSON each.
fn truth(world: &World, query: &str) -> Response<Outgoing> {
    let path = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "path");
    let path = path.map(|(_, path)| path.into_owned()).unwrap_or_default();
    match world.selection(&path, query) {
        Ok(selection) => {
            let truth = world.truth_of(&selection);
            let mut response = Response::new(Outgoing::stream(lines(truth)));
            let kind = HeaderValue::from_static("application/x-ndjson");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Err(refusal) => plain(world.refused(&refusal, &path)),
    }
}

fn lines(truth: Truth) -> impl Iterator<Item = Bytes> + Send + Sync {
    (0..truth.total().div_ceil(TOGETHER)).map(move |step| {
        let mut text = Vec::with_capacity(128 * TOGETHER as usize);
        for position in step * TOGETHER..(step + 1) * TOGETHER {
            let Some(entry) = truth.entry(position) else { break };
            let _never_fails = serde_json::to_writer(&mut text, &entry);
            text.push(b'\n');
        }
        Bytes::from(text)
    })
}
