//! The types that come with the service, so that it is useful at once.

mod cleanup;
mod http;

pub use cleanup::{Cleanup, Retention};
pub use http::Http;
