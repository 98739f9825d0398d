//! A request and its answer, apart from any socket: the server sends them over one, a simulation
//! takes them as they are.

use std::time::Duration;

use bytes::Bytes;
use hyper::HeaderMap;

use crate::flight::Ticket;

/// What is asked of the world.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// What stands after the question mark.
    pub query: &'a str,
}

impl<'a> Request<'a> {
    /// A GET of a path with its query: `/v1/contratos?dataInicial=…`.
    pub fn get(target: &'a str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { method: "GET", path, query }
    }
}

/// What comes back, and how.
///
/// While it is held the request is in flight. Whoever plays the network waits for `delay`, does what
/// `ending` says, and calls [`delivered`](Self::delivered) where the body has arrived whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// A body without `content-length` is sent in chunks.
    pub headers: HeaderMap,
    pub body: Body,
    /// How long the client waits for the first byte.
    pub delay: Duration,
    pub ending: Ending,
    pub(crate) ticket: Ticket,
}

impl Answer {
    /// The client has all of it. A page counts as served only then.
    pub fn delivered(self) {
        if self.ending == Ending::Whole {
            self.ticket.delivered();
        }
    }
}

/// The body of an answer.
#[derive(Clone, Debug)]
pub enum Body {
    Bytes(Bytes),
    /// So many bytes, which nobody holds: [`Body::filler`] gives them piece by piece.
    Filler(u64),
}

/// How the connection fares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// All is sent.
    Whole,
    /// The body is only a part of what was promised; then the connection closes.
    Cut,
    /// Nothing is sent, the connection is reset.
    Reset,
    /// Nothing is sent; after the delay the connection closes.
    Hang,
}

const PIECE: u64 = 64 * 1024;
static FILLER: [u8; PIECE as usize] = [b'x'; PIECE as usize];
const HEAD: &[u8] = br#"{"data":[{"objetoContrato":""#;
const TAIL: &[u8] =
    br#""}],"totalRegistros":1,"totalPaginas":1,"numeroPagina":1,"paginasRestantes":0,"empty":false}"#;

impl Body {
    /// The length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Filler(length) => (*length).max((HEAD.len() + TAIL.len()) as u64),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces of a body that is a page with one record, as long as that has to be.
    pub fn filler(length: u64) -> impl Iterator<Item = Bytes> {
        let middle = length.saturating_sub((HEAD.len() + TAIL.len()) as u64);
        let whole = (0..middle / PIECE).map(|_| Bytes::from_static(&FILLER));
        let rest = Bytes::from_static(&FILLER).slice(..(middle % PIECE) as usize);
        let head = std::iter::once(Bytes::from_static(HEAD));
        head.chain(whole).chain([rest, Bytes::from_static(TAIL)])
    }
}
