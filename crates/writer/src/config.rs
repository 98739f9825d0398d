//! What a writer may read and write, and how much of it.

use std::path::PathBuf;
use std::time::Duration;

use crate::network::Network;
use crate::row::Caps;

#[derive(Clone, Debug, Default)]
pub struct Config {
    pub access: Access,
    pub limits: Limits,
    pub timing: Timing,
}

/// Where sources may be, and which tables may be written.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The only hosts that are asked, where there are any: `name`, `name:port` or `*.name`.
    pub hosts: Vec<String>,
    /// Addresses of the inside that may be asked all the same.
    pub private: Vec<Network>,
    /// Below which files may be read.
    pub directories: Vec<PathBuf>,
    /// The only tables that are written, where there are any: `schema.table`.
    pub tables: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// Of a source as it is sent.
    pub bytes: u64,
    /// Of a source when it is unpacked.
    pub unpacked_bytes: u64,
    /// How many times longer it may become by that.
    pub expansion: u64,
    pub rows: u64,
    pub caps: Caps,
    /// Of a request's body, with what is inline in it.
    pub request_bytes: usize,
    pub batch_rows: usize,
    pub batch_bytes: usize,
    /// Jobs that run at once in this process, and those that may wait.
    pub running: usize,
    pub waiting: usize,
    /// Failed items that are kept of a job; all are counted.
    pub failed_items: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 4 << 30,
            unpacked_bytes: 16 << 30,
            expansion: 200,
            rows: 50_000_000,
            caps: Caps::default(),
            request_bytes: 32 << 20,
            batch_rows: 20_000,
            batch_bytes: 4 << 20,
            running: 4,
            waiting: 1000,
            failed_items: 10_000,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Timing {
    pub connect: Duration,
    /// Between two pieces of a source.
    pub silence: Duration,
    /// For all of a source.
    pub source: Duration,
    /// For one statement of a batch.
    pub statement: Duration,
    pub heartbeat: Duration,
    /// A process that has said nothing for this long is dead.
    pub stale: Duration,
    /// Between looks for jobs that nobody announced.
    pub poll: Duration,
    /// How often a job that failed in passing is begun, and the wait before the second time.
    pub attempts: u32,
    pub backoff: Duration,
    /// How long jobs have to come to the end of their batch when the process is told to end.
    pub grace: Duration,
    /// Ended jobs are removed after.
    pub kept: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            silence: Duration::from_secs(30),
            source: Duration::from_secs(6 * 3600),
            statement: Duration::from_secs(120),
            heartbeat: Duration::from_secs(3),
            stale: Duration::from_secs(12),
            poll: Duration::from_secs(2),
            attempts: 4,
            backoff: Duration::from_millis(500),
            grace: Duration::from_secs(8),
            kept: Duration::from_secs(30 * 24 * 3600),
        }
    }
}
