//! lavra-world as its users see it: in process, and behind a real socket.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers as well")]

mod ads;
mod anything;
mod api;
mod clients;
mod control;
mod drift;
mod faults;
mod fixed;
mod fleet;
mod in_flight;
mod outage;
mod proxies;
mod records;
mod refusals;
mod sockets;
mod stats;
mod support;
mod truth;
