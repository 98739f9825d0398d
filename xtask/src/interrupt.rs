//! Ctrl-C and SIGTERM end a run the ordinary way: the command in the foreground is told to stop, the
//! functions above it return [`Interrupted`], and every server and temporary directory is dropped on
//! the way out. A second signal leaves at once; the servers then die by their parent-death signal.

use std::fmt;
use std::io::IsTerminal;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static RECEIVED: AtomicBool = AtomicBool::new(false);
static FOREGROUND: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

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
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
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
    for pid in FOREGROUND.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        // It may have ended by itself between the lock and here.
        let _ = kill_process(*pid, Signal::TERM);
    }
}

/// While it lives, a signal to us is told to that process too.
#[derive(Debug)]
pub(crate) struct Foreground(Option<Pid>);

impl Foreground {
    pub(crate) fn of(child: &Child) -> Self {
        let pid = Pid::from_raw(child.id() as i32);
        FOREGROUND.lock().unwrap_or_else(PoisonError::into_inner).extend(pid);
        Self(pid)
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            FOREGROUND.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| *one != pid);
        }
    }
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
