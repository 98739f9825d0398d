//! The contract of the store: each behaviour once, run on every engine.

mod glance;
mod leases;
mod log;
mod missions;
mod reports;
mod sessions;
mod settings;
mod steps;
mod things;
mod wishes;
