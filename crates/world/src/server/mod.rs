//! The world behind a socket: HTTP/1.1 on loopback, down to connections that reset, hang and break
//! off. Below `/_world/` it talks about itself.

pub(crate) mod body;
pub(crate) mod control;
mod socket;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::body::Outgoing;
use self::socket::Socket;
use crate::answer::{Answer, Ending, Request};
use crate::reply::Reply;
use crate::world::World;

/// Ends a connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("no answer, by design")]
pub(crate) struct NoAnswer;

/// What answers the requests of a socket. It may set the flag, which has the connection reset.
pub(crate) trait Answers: Clone + Send + Sync + 'static {
    fn respond(
        &self,
        request: hyper::Request<Incoming>,
        reset: &AtomicBool,
    ) -> impl Future<Output = Result<Response<Outgoing>, NoAnswer>> + Send;
}

impl World {
    /// Serves on the listener, which must be on loopback, until told to stop; then all connections are
    /// dropped at once.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
        listen(self, listener, stop).await
    }
}

pub(crate) async fn listen(
    world: &impl Answers,
    listener: TcpListener,
    stop: CancellationToken,
) -> io::Result<()> {
    if !listener.local_addr()?.ip().is_loopback() {
        let reason = "a world is served on loopback only, such as 127.0.0.1";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let _slower_without = stream.set_nodelay(true);
                    connections.spawn(connection(world.clone(), stream));
                }
                // Too many files, or a client that is gone already: others may still come.
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = stop.cancelled() => return Ok(()),
        }
    }
}

async fn connection(world: impl Answers, stream: tokio::net::TcpStream) {
    let reset = Arc::new(AtomicBool::new(false));
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let service = service_fn(|request| world.respond(request, &reset));
    let serving = http1::Builder::new().header_read_timeout(None).serve_connection(socket, service);
    if let Err(error) = serving.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The timer counts milliseconds and rounds up, then one more: so the delay is right on average.
const LATE: Duration = Duration::from_micros(1500);

impl Answers for World {
    async fn respond(
        &self,
        request: hyper::Request<Incoming>,
        reset: &AtomicBool,
    ) -> Result<Response<Outgoing>, NoAnswer> {
        let path = request.uri().path();
        if path.starts_with("/_world/") {
            return Ok(control::respond(self, request).await);
        }
        let asked = Request {
            method: request.method().as_str(),
            path,
            query: request.uri().query().unwrap_or_default(),
        };
        let arrived = tokio::time::Instant::now();
        let answer = self.answer(&asked);
        if !answer.delay.is_zero() {
            let late = if answer.ending == Ending::Whole { LATE } else { Duration::ZERO };
            tokio::time::sleep_until(arrived + answer.delay.saturating_sub(late)).await;
        }
        match answer.ending {
            Ending::Whole | Ending::Cut => Ok(response(answer)),
            Ending::Hang => Err(NoAnswer),
            Ending::Reset => {
                reset.store(true, Ordering::Relaxed);
                Err(NoAnswer)
            }
        }
    }
}

fn response(mut answer: Answer) -> Response<Outgoing> {
    let headers = std::mem::take(&mut answer.headers);
    let status = answer.status;
    dress(Response::new(Outgoing::answer(answer)), status, headers)
}

/// A reply about the world itself.
fn plain(reply: Reply) -> Response<Outgoing> {
    let Reply { status, headers, body, .. } = reply;
    dress(Response::new(Outgoing::plain(body)), status, headers)
}

fn dress(
    mut response: Response<Outgoing>,
    status: u16,
    headers: hyper::HeaderMap,
) -> Response<Outgoing> {
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    *response.headers_mut() = headers;
    // The recorded status lines have none.
    response.extensions_mut().insert(ReasonPhrase::from_static(b""));
    response
}
