//! A little server that answers what it is told to, byte for byte.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What is sent for a path.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Sent in pieces with this pause in between.
    pub(crate) pause: Option<Duration>,
    /// Cut after so many bytes of the body.
    pub(crate) cut: Option<usize>,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.into(), pause: None, cut: None }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, ..Self::ok("an inner secret page") }
    }

    pub(crate) fn redirect(to: impl Into<String>) -> Self {
        Self::status(302).with("Location", to)
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

type Handler = dyn Fn(&str, usize) -> Answer + Send + Sync;

#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// `handler` has the path and how many requests came before.
    pub(crate) async fn serve(
        handler: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::serve_on("127.0.0.1:0", handler).await
    }

    pub(crate) async fn serve_on(
        place: &str,
        handler: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(place).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, handler): (_, Arc<Handler>) = (Arc::clone(&requests), Arc::new(handler));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (seen, handler) = (Arc::clone(&seen), Arc::clone(&handler));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = socket.read_u8().await else { return };
                        head.push(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    let before = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(head);
                        seen.len() - 1
                    };
                    let _gone = send(&mut socket, handler(&path, before)).await;
                });
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn send(socket: &mut tokio::net::TcpStream, answer: Answer) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} x\r\nConnection: close\r\n", answer.status);
    write!(head, "Content-Length: {}\r\n", answer.body.len()).unwrap();
    for (name, value) in &answer.headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    socket.write_all(format!("{head}\r\n").as_bytes()).await?;
    let body = &answer.body[..answer.cut.unwrap_or(answer.body.len()).min(answer.body.len())];
    match answer.pause {
        None => socket.write_all(body).await?,
        Some(pause) => {
            for piece in body.chunks(body.len() / 20 + 1) {
                socket.write_all(piece).await?;
                socket.flush().await?;
                tokio::time::sleep(pause).await;
            }
        }
    }
    socket.shutdown().await
}
