//! Processes that are killed, frozen, woken and begun again, and how often each was. They share a
//! directory: their settings are there, and a log of each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::interrupt;

pub(super) struct Processes {
    directory: TempDir,
    members: Vec<Member>,
}

struct Member {
    name: String,
    /// The command of every process in this place.
    command: Box<dyn Fn() -> Command>,
    process: Option<Daemon>,
    frozen_until: Option<Instant>,
    kills: u32,
    freezes: u32,
}

/// How often one was killed and frozen.
#[derive(Clone, Debug)]
pub(super) struct Suffered {
    pub(super) name: String,
    pub(super) kills: u32,
    pub(super) freezes: u32,
}

impl Processes {
    /// None of them yet, in a directory with these settings.
    pub(super) fn new(settings: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("lavra.toml"), settings)?;
        Ok(Self { directory, members: Vec::new() })
    }

    /// One more, which is begun by [`Self::restart`].
    pub(super) fn add(&mut self, name: &str, command: impl Fn() -> Command + 'static) {
        let (name, command) = (name.to_owned(), Box::new(command));
        let member =
            Member { name, command, process: None, frozen_until: None, kills: 0, freezes: 0 };
        self.members.push(member);
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Waits until the one in this place is ready.
    pub(super) fn wait(
        &mut self,
        place: usize,
        patience: Duration,
        ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let Some(member) = self.members.get_mut(place) else { return Ok(()) };
        let Some(process) = &mut member.process else { return Ok(()) };
        process.wait_until(patience, ready).with_context(|| member.name.clone())
    }

    /// `kill -9`, and a new process in its place.
    pub(super) fn kill(&mut self, place: usize) -> Result<()> {
        self.members[place].kills += 1;
        self.replace(place)
    }

    /// The same, uncounted.
    pub(super) fn replace(&mut self, place: usize) -> Result<()> {
        let member = &mut self.members[place];
        // Dropped, it is killed and waited for.
        member.process = None;
        member.frozen_until = None;
        self.begin(place)
    }

    pub(super) fn freeze(&mut self, place: usize, length: Duration) {
        let member = &mut self.members[place];
        if let Some(process) = &member.process {
            process.signal(Signal::STOP);
            member.frozen_until = Some(Instant::now() + length);
            member.freezes += 1;
        }
    }

    /// Wakes those whose time has come.
    pub(super) fn thaw(&mut self) {
        let now = Instant::now();
        self.wake(|until| until <= now);
    }

    fn wake(&mut self, is_due: impl Fn(Instant) -> bool) {
        for member in &mut self.members {
            if member.frozen_until.is_some_and(&is_due) {
                member.frozen_until = None;
                member.process.iter().for_each(|process| process.signal(Signal::CONT));
            }
        }
    }

    /// Those that do not run are begun: for the first time, or because they ended by themselves.
    pub(super) fn restart(&mut self) -> Result<()> {
        for place in 0..self.members.len() {
            let process = &mut self.members[place].process;
            if process.as_mut().map(Daemon::is_alive).transpose()? != Some(true) {
                self.begin(place)?;
            }
        }
        Ok(())
    }

    /// Everyone runs, and runs unfrozen.
    pub(super) fn revive(&mut self) -> Result<()> {
        self.wake(|_| true);
        self.restart()?;
        // One that was woken may find that it has nothing left to live for.
        interrupt::sleep(Duration::from_secs(1))?;
        self.restart()
    }

    /// All of them end in order.
    pub(super) fn stop(&mut self, patience: Duration) -> Result<()> {
        for member in &mut self.members {
            if let Some(process) = member.process.take() {
                process.stop(Signal::TERM, patience).with_context(|| member.name.clone())?;
            }
        }
        Ok(())
    }

    /// The directory with the logs stays; the processes do not.
    pub(super) fn keep(self) -> PathBuf {
        drop(self.members);
        self.directory.keep()
    }

    pub(super) fn suffered(&self) -> Vec<Suffered> {
        let of = |member: &Member| Suffered {
            name: member.name.clone(),
            kills: member.kills,
            freezes: member.freezes,
        };
        self.members.iter().map(of).collect()
    }

    fn begin(&mut self, place: usize) -> Result<()> {
        let member = &mut self.members[place];
        let mut command = (member.command)();
        command.current_dir(self.directory.path());
        let log = self.directory.path().join(format!("{}.log", member.name));
        let process = Daemon::start("lavra", command, &log);
        member.process = Some(process.with_context(|| member.name.clone())?);
        Ok(())
    }
}
