//! The engine at work: runners, keepers and brokers on real stores, real sockets and real time.

mod ambiguous;
mod broker;
mod builtin;
mod cancel;
mod ends;
mod keeper;
mod outage;
mod proxy;
mod rig;
