//! Ctrl-C and SIGTERM end a run the ordinary way: the command in the foreground is told to stop, the
//! functions above it return [`Interrupted`], and every server and temporary directory is dropped on
//! the way out. A second signal leaves at once; the servers then die by their parent-death signal.

use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static RECEIVED: AtomicBool = AtomicBool::new(false);
static FOREGROUND: Mutex<Option<Pid>> = Mutex::new(None);

/// The run was ended by a signal.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Starts to watch for signals. From here on they no longer end the process by themselves.
pub(crate) fn watch() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if RECEIVED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
            // A terminal's Ctrl-C reached the whole process group; a second one means `kill` to nextest.
            if signal != SIGINT || !std::io::stdin().is_terminal() {
                tell_foreground();
            }
        }
    });
    Ok(())
}

fn tell_foreground() {
    let foreground = FOREGROUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pid) = *foreground {
        // It may have ended by itself between the lock and here.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Names the process that is to hear of a signal, or none.
pub(crate) fn set_foreground(pid: Option<Pid>) {
    *FOREGROUND.lock().unwrap_or_else(PoisonError::into_inner) = pid;
}

/// An error once a signal came.
pub(crate) fn check() -> Result<()> {
    if RECEIVED.load(Ordering::SeqCst) {
        return Err(Interrupted.into());
    }
    Ok(())
}

/// Sleeps a while, and not at all once a signal came.
pub(crate) fn sleep(duration: Duration) -> Result<()> {
    check()?;
    std::thread::sleep(duration);
    check()
}
