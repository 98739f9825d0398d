#![doc = include_str!("../README.md")]

pub mod breaker;
pub mod digest;
pub mod limiter;
pub mod machine;
pub mod missing;
pub mod model;
mod month;
pub mod reading;
pub mod source;

pub use month::{Month, NotAMonth};
