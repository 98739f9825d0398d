//! Deliveries by a running process to a receiver on this machine.

mod answers;
mod ends;
mod secrets;
mod several;
