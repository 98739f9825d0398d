//! Who runs a server. PostgreSQL and PgBouncer refuse to run as root, so root hands each server to the
//! unprivileged user that its Debian package brought; anybody else runs it as themselves.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::geteuid;

use crate::exec;

/// The user of one server.
#[derive(Debug, Clone)]
pub(crate) enum User {
    Myself,
    Service { name: &'static str, uid: u32, gid: u32 },
}

/// What a server gets when the process that started it is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeathSignal {
    Terminate,
    Interrupt,
}

impl User {
    /// The user that runs the servers of one Debian package.
    pub(crate) fn of_service(name: &'static str) -> Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self::Myself);
        }
        let number = |flag: &str| -> Result<u32> {
            let said = exec::capture(Command::new("id").args([flag, name]))?;
            said.trim().parse().with_context(|| format!("`id {flag} {name}` printed no number"))
        };
        Ok(Self::Service { name, uid: number("-u")?, gid: number("-g")? })
    }

    /// A command run as this user. With a death signal it does not outlive us, however we end.
    pub(crate) fn command(&self, program: &Path, death: Option<DeathSignal>) -> Command {
        let mut command = Command::new("setpriv");
        if let Self::Service { uid, gid, .. } = self {
            command
                .arg(format!("--reuid={uid}"))
                .arg(format!("--regid={gid}"))
                .arg("--clear-groups");
        }
        match death {
            Some(DeathSignal::Terminate) => command.arg("--pdeathsig=TERM"),
            Some(DeathSignal::Interrupt) => command.arg("--pdeathsig=INT"),
            None => &mut command,
        };
        command.arg("--").arg(program);
        command
    }

    /// Gives a file or directory to this user.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        match self {
            Self::Myself => Ok(()),
            Self::Service { name, uid, gid } => chown(path, Some(*uid), Some(*gid))
                .with_context(|| format!("cannot give {} to {name}", path.display())),
        }
    }
}
