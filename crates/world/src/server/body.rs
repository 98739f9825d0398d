//! Bodies on their way out, piece by piece; the last one says whether all arrived.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::answer::{Answer, Body, Ending};

/// Breaks the connection in the middle of a body.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body breaks off, by design")]
pub(crate) struct BrokenOff;

pub(crate) struct Outgoing {
    pieces: Pieces,
    /// Held for as long as the request is in flight.
    answer: Option<Answer>,
    /// Whether it breaks off, whatever an answer says.
    breaks: bool,
    /// Whether what was written so far has had its chance to leave before the break.
    flushed: bool,
}

enum Pieces {
    One(Option<Bytes>),
    Many(Box<dyn Iterator<Item = Bytes> + Send + Sync>),
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Outgoing").finish_non_exhaustive()
    }
}

impl Outgoing {
    pub(crate) fn answer(mut answer: Answer) -> Self {
        let body = std::mem::replace(&mut answer.body, Body::Bytes(Bytes::new()));
        Self { answer: Some(answer), ..Self::plain(body) }
    }

    pub(crate) fn plain(body: Body) -> Self {
        let pieces = match body {
            Body::Bytes(bytes) => Pieces::One(Some(bytes).filter(|bytes| !bytes.is_empty())),
            Body::Filler(length) => Pieces::Many(Box::new(Body::filler(length))),
        };
        Self { pieces, answer: None, breaks: false, flushed: false }
    }

    pub(crate) fn stream(pieces: impl Iterator<Item = Bytes> + Send + Sync + 'static) -> Self {
        Self { answer: None, breaks: false, flushed: false, pieces: Pieces::Many(Box::new(pieces)) }
    }

    /// The same, and then the connection breaks.
    pub(crate) fn broken(self) -> Self {
        Self { breaks: true, ..self }
    }
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let piece = match &mut self.pieces {
            Pieces::One(bytes) => bytes.take(),
            Pieces::Many(pieces) => pieces.find(|piece| !piece.is_empty()),
        };
        if let Some(piece) = piece {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let cut =
            self.breaks || self.answer.as_ref().is_some_and(|answer| answer.ending == Ending::Cut);
        if cut && !self.flushed {
            self.flushed = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(answer) = self.answer.take() {
            answer.delivered();
        }
        Poll::Ready(cut.then_some(Err(BrokenOff)))
    }

    /// Only what has nothing in it is known to be over; the length is not told, so that bodies go in
    /// chunks unless their headers say otherwise.
    fn is_end_stream(&self) -> bool {
        matches!(self.pieces, Pieces::One(None))
            && !self.breaks
            && self.answer.as_ref().is_none_or(no_content)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

fn no_content(answer: &Answer) -> bool {
    answer.status == 204
}
