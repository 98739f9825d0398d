//! How the API refuses: in two shapes of JSON, and once without a word.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use serde_json::json;

/// The shapes of an error's body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shape {
    /// The framework's: a number for a status, the time in UTC.
    Spring,
    /// The application's: a text for a status, the time of Brasília.
    Pncp,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    Error {
        status: u16,
        shape: Shape,
        message: String,
    },
    /// 200 and nothing: what a dashed date gets from `pca/atualizacao`.
    Silent,
}

impl Refusal {
    pub(crate) fn pncp(status: u16, message: impl Into<String>) -> Self {
        Self::Error { status, shape: Shape::Pncp, message: message.into() }
    }

    pub(crate) fn spring(status: u16, message: impl Into<String>) -> Self {
        Self::Error { status, shape: Shape::Spring, message: message.into() }
    }
}

/// The offset of Brasília.
pub(crate) fn brasilia() -> TimeZone {
    TimeZone::fixed(Offset::constant(-3))
}

/// The body of an error; `path` is below the base, as the API names it.
pub(crate) fn body(
    shape: Shape,
    status: u16,
    message: &str,
    path: &str,
    now: Timestamp,
) -> Vec<u8> {
    let path = format!("/pncp-consulta{path}");
    let value = match shape {
        Shape::Spring => json!({
            "timestamp": now.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string(),
            "status": status,
            "error": reason(status),
            "message": message,
            "path": path,
        }),
        Shape::Pncp => {
            let local = now.to_zoned(brasilia());
            json!({
                "path": path,
                "message": message,
                "error": format!("{status} {}", reason(status).to_uppercase().replace(' ', "_")),
                "timestamp": local.strftime("%Y-%m-%dT%H:%M:%S%.3f-03:00").to_string(),
                "status": status.to_string(),
            })
        }
    };
    value.to_string().into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        422 => "Unprocessable Entity",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
