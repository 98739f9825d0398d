#![doc = include_str!("../README.md")]

pub mod ads;
mod answer;
mod api;
mod args;
mod canonical;
mod config;
mod day;
mod dice;
mod endpoint;
mod faults;
pub mod fleet;
mod flight;
mod headers;
mod json;
mod key;
mod listing;
mod organ;
mod overlay;
mod page;
pub mod proxy;
mod records;
mod reply;
mod server;
mod state;
mod stats;
mod truth;
mod volume;
mod words;
mod world;

pub use ads::{AdFaults, AdLibrary, AdsConfig};
pub use answer::{Answer, Body, Ending, Request};
pub use args::WorldArgs;
pub use canonical::{Entry, canonical, page_entries};
pub use config::{Fixed, WorldConfig};
pub use endpoint::Endpoint;
pub use faults::{
    At, BadFaults, Change, Faults, Hang, Huge, InFlight, Latency, Outage, RetryAfter,
};
pub use fleet::{Fate, FleetAnswer, FleetBody, FleetConfig, FleetFaults, FleetRequest, FleetWorld};
pub use proxy::{ForwardProxy, ProxyFault};
pub use stats::{PageCount, Stats};
pub use truth::Truth;
pub use world::World;
