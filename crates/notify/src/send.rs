//! One request to a receiver, and what its answer means.
//!
//! The body of an answer is not read: it means nothing to us, and could say anything. Redirects are
//! not followed; a webhook is where it was said to be.

use std::time::Duration;

use jiff::Timestamp;
use lavra_tasks::{Backoff, Failure, outbound};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, redirect};

use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::model::Notification;
use crate::sign::sign;

const EVENT: HeaderName = HeaderName::from_static("lavra-event");
const DELIVERY: HeaderName = HeaderName::from_static("lavra-delivery");
const TIMESTAMP: HeaderName = HeaderName::from_static("lavra-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("lavra-signature");

/// Those that are ours, as the page about webhooks has them.
#[cfg(test)]
pub(crate) const HEADERS: [HeaderName; 4] = [EVENT, DELIVERY, TIMESTAMP, SIGNATURE];

/// How long a receiver has, and how long it is left alone after it failed.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub timeout: Duration,
    pub backoff: Backoff,
}

impl Default for Timing {
    fn default() -> Self {
        let backoff =
            Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(3600) };
        Self { timeout: Duration::from_secs(10), backoff }
    }
}

/// What a receiver answered that was reached and does not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Taken(StatusCode),
    /// 410: it wants nothing any more.
    Gone,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    client: Client,
    private_allowed: bool,
}

impl Sender {
    pub(crate) fn new(timing: Timing, private_allowed: bool) -> Result<Self> {
        let client = outbound::client(private_allowed)
            .redirect(redirect::Policy::none())
            .timeout(timing.timeout)
            .build()
            .map_err(|error| Error::Invalid(format!("no HTTP client: {error}")))?;
        Ok(Self { client, private_allowed })
    }

    /// `delivery` is the same for every attempt to tell this receiver of this.
    pub(crate) async fn send(
        &self,
        to: &Destination,
        notification: &Notification,
        delivery: &str,
        now: Timestamp,
    ) -> Result<Answer, Failure> {
        let refused = outbound::refusal_of(to.url()).filter(|_| !self.private_allowed);
        if let Some(refusal) = refused {
            return Err(Failure::Permanent(refusal));
        }
        let body = serde_json::to_vec(notification)
            .map_err(|error| Failure::permanent(error.to_string()))?;
        let seconds = now.as_second();
        let text = |text: &str| {
            HeaderValue::from_str(text).map_err(|error| Failure::permanent(error.to_string()))
        };
        let request = self
            .client
            .post(to.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(EVENT, text(&notification.kind)?)
            .header(DELIVERY, text(delivery)?)
            .header(TIMESTAMP, seconds)
            .header(SIGNATURE, text(&sign(to.secret(), seconds, &body))?)
            .body(body);
        let answer = request.send().await.map_err(|error| outbound::trouble(&error))?;
        judge(answer.status(), outbound::retry_after(answer.headers()))
    }
}

fn judge(status: StatusCode, after: Option<Duration>) -> Result<Answer, Failure> {
    if status.is_success() {
        return Ok(Answer::Taken(status));
    }
    if status == StatusCode::GONE {
        return Ok(Answer::Gone);
    }
    let passes = status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        );
    let error = if status.is_redirection() {
        format!("HTTP {status}: redirects are not followed; set the URL to where it is now")
    } else {
        format!("HTTP {status}")
    };
    Err(if passes { Failure::Retry { error, after } } else { Failure::Permanent(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_means_what_its_status_says() {
        let judged = |code: u16| judge(StatusCode::from_u16(code).unwrap(), None);
        for code in [200, 201, 202, 204] {
            assert!(matches!(judged(code), Ok(Answer::Taken(_))), "{code}");
        }
        assert_eq!(judged(410), Ok(Answer::Gone));
        for code in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert!(matches!(judged(code), Err(Failure::Retry { .. })), "{code}");
        }
        for code in [301, 302, 307, 308, 400, 401, 403, 404, 405, 413, 422] {
            assert!(matches!(judged(code), Err(Failure::Permanent(_))), "{code}");
        }
    }

    #[test]
    fn a_pause_that_the_receiver_asks_for_is_passed_on() {
        let pause = Some(Duration::from_secs(90));
        let Err(Failure::Retry { after, .. }) = judge(StatusCode::TOO_MANY_REQUESTS, pause) else {
            panic!("it is tried again");
        };
        assert_eq!(after, pause);
    }
}
