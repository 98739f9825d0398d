//! A server process in the background.
//!
//! It runs in a process group of its own, so that a terminal's Ctrl-C does not reach it before the
//! tests that use it, and it does not outlive us: dropped, it is killed; and if we are killed, the
//! kernel sends it its death signal. The kernel counts the *thread* that started a process as its
//! parent, so one thread that never ends starts them all.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::interrupt;

struct Birth {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

static NURSERY: LazyLock<Sender<Birth>> = LazyLock::new(|| {
    let (sender, births) = channel::<Birth>();
    std::thread::spawn(move || {
        for mut birth in births {
            // The asker waits for the answer; there is nobody to tell if it does not.
            let _ = birth.reply.send(birth.command.spawn());
        }
    });
    sender
});

/// A running server process, and where it logs.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a command that stays in the foreground; its output is appended to the log.
    pub(crate) fn start(name: &'static str, mut command: Command, log: &Path) -> Result<Self> {
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        let (reply, answer) = channel();
        NURSERY
            .send(Birth { command, reply })
            .ok()
            .context("the thread that starts servers is gone")?;
        let child = answer
            .recv()
            .context("the thread that starts servers is gone")?
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, child, log: log.to_owned() })
    }

    /// Waits until `ready` says so. A server that ends instead, or takes too long, is an error with the end of its log.
    pub(crate) fn wait_until(
        &mut self,
        patience: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !ready() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at its start ({status}):\n{}", self.name, self.last_words());
            }
            if start.elapsed() > patience {
                bail!(
                    "{} is not ready after {} s:\n{}",
                    self.name,
                    patience.as_secs(),
                    self.last_words()
                );
            }
            interrupt::sleep(Duration::from_millis(25))?;
        }
        Ok(())
    }

    /// Sends a signal and waits for the end; kills it when that takes too long.
    pub(crate) fn stop(mut self, signal: Signal, patience: Duration) -> Result<()> {
        self.signal(signal);
        let start = Instant::now();
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > patience {
                bail!(
                    "{} did not stop within {} s and was killed:\n{}",
                    self.name,
                    patience.as_secs(),
                    self.last_words()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Waits for the end that it comes to by itself.
    pub(crate) fn end(mut self, patience: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > patience {
                bail!(
                    "{} has not ended after {} s:\n{}",
                    self.name,
                    patience.as_secs(),
                    self.last_words()
                );
            }
            interrupt::sleep(Duration::from_millis(10))?;
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_alive(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // It is our child and not waited for, so the id is still its own.
            let _ = kill_process(pid, signal);
        }
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Already ended is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
