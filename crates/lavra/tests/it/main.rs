//! The real program: started, killed, frozen, with a wrong clock, and asked wrong things.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers as well")]

mod commands;
mod demo;
mod disk;
mod examples;
mod extraction;
mod first_minutes;
mod fleet;
mod keys;
mod processes;
mod program;
mod webhooks;
mod whole;
mod worker;
mod writer;
