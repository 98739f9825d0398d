//! lavra-notify on real databases, with real receivers. Run it by `cargo xtask test`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers as well")]

mod contract;
mod late;
mod live;
mod steps;
mod support;
