//! A worker as an orchestrator meets it: over HTTP, behind real proxies, in front of an ad library.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers as well")]

mod bucket;
mod child;
mod contract;
mod kills;
mod refusals;
mod restarts;
mod scrapes;
mod secrets;
mod sessions;
mod support;
