//! Loopback ports for private servers.
//!
//! Taken from below the range that the kernel gives to outgoing connections. Inside that range a
//! client that retries against a stopped server can take the server's port for its own end, and even
//! connect to itself, and the server could not come back on its port.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Result, bail};

const FIRST: u16 = 15_000;
const COUNT: u16 = 16_000;

static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port that nobody listens on and that this process has not given out before.
pub(crate) fn free() -> Result<u16> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let start = somewhere();
    for step in 0..COUNT {
        let port = FIRST + (start + step) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() && taken.insert(port) {
            return Ok(port);
        }
    }
    bail!("no free loopback port from {FIRST} on: stop some servers")
}

/// The first of `length` ports in a row that nobody listens on and that were not given out before.
pub(crate) fn row(length: u16) -> Result<u16> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let start = somewhere();
    for step in 0..COUNT {
        let first = FIRST + (start + step) % (COUNT - length);
        let is_free = |port: u16| {
            !taken.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        };
        if (first..first + length).all(is_free) {
            taken.extend(first..first + length);
            return Ok(first);
        }
    }
    bail!("no {length} free loopback ports in a row from {FIRST} on: stop some servers")
}

/// Another place for every call and every process, so that two runs side by side seldom meet.
fn somewhere() -> u16 {
    let elapsed = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mixed = (elapsed.as_nanos() as u64 ^ u64::from(std::process::id()) << 32)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as u16 % COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_out_once() {
        let ports: BTreeSet<u16> = (0..50).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)));
    }

    #[test]
    fn a_row_of_ports_is_given_out_once() {
        let rows: Vec<u16> = (0..20).map(|_| row(4).unwrap()).collect();
        let all: BTreeSet<u16> = rows.iter().flat_map(|first| *first..first + 4).collect();
        assert_eq!(all.len(), 80);
        assert!((0..20).all(|_| !all.contains(&free().unwrap())));
    }
}
