//! Debian packages: found where Debian puts them, installed when missing.
//!
//! Debian starts a server right after installing it. Ours are private, so that is forbidden meanwhile,
//! the way Debian provides for: a `policy-rc.d` that says no.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;

use crate::{exec, output};

const POLICY: &str = "/usr/sbin/policy-rc.d";

/// What a command of ours needs of Debian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Package {
    PostgreSql,
    PgBouncer,
    RabbitMq,
    Faketime,
    Python,
    PythonVenv,
    Npm,
    Chromium,
    Systemd,
    Groff,
    Curl,
}

impl Package {
    fn debian(self) -> &'static [&'static str] {
        match self {
            Self::PostgreSql => &["postgresql"],
            Self::PgBouncer => &["pgbouncer"],
            Self::RabbitMq => &["rabbitmq-server"],
            Self::Faketime => &["libfaketime"],
            Self::Python => &["python3"],
            Self::PythonVenv => &["python3-venv"],
            Self::Npm => &["nodejs", "npm"],
            Self::Chromium => &["chromium"],
            Self::Systemd => &["systemd"],
            Self::Groff => &["groff-base"],
            Self::Curl => &["curl"],
        }
    }

    /// The program, library or directory of programs that the package is wanted for.
    fn find(self) -> Option<PathBuf> {
        match self {
            Self::PostgreSql => newest_postgres(Path::new("/usr/lib/postgresql")),
            Self::PgBouncer => existing("/usr/sbin/pgbouncer").or_else(|| on_path("pgbouncer")),
            Self::RabbitMq => existing("/usr/lib/rabbitmq/bin/rabbitmq-server"),
            Self::Faketime => faketime(Path::new("/usr/lib")),
            Self::Python => on_path("python3"),
            Self::PythonVenv => python_with("ensurepip"),
            Self::Npm => on_path("npm"),
            Self::Chromium => named("LAVRA_CHROMIUM").or_else(|| on_path("chromium")),
            Self::Systemd => on_path("systemd-analyze"),
            Self::Groff => on_path("groff"),
            Self::Curl => on_path("curl"),
        }
    }

    /// [`Self::find`] for what [`ensure`] has seen to.
    pub(crate) fn path(self) -> Result<PathBuf> {
        self.find().with_context(|| {
            format!(
                "Debian's {} does not bring what it should: reinstall it",
                self.debian().join(" and ")
            )
        })
    }
}

/// Installs those packages that are missing.
pub(crate) fn ensure(wanted: &[Package]) -> Result<()> {
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|package| package.find().is_none())
        .flat_map(|package| package.debian())
        .copied()
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    let Some(root) = Root::find() else {
        bail!(
            "missing: {names}. Install with `apt-get install {names}` (this user is neither root nor allowed to sudo without a password)"
        );
    };
    output::step(&format!("installing Debian's {names}"));
    let _quiet = NoServices::begin(root)?;
    exec::run_beside_data(root.command("apt-get").args(["update", "--quiet"]))?;
    exec::run_beside_data(
        root.command("apt-get")
            .args(["install", "--yes", "--quiet", "--no-install-recommends"])
            .args(&missing),
    )
    .with_context(|| format!("cannot install {names}"))
}

/// How to become root.
#[derive(Clone, Copy)]
enum Root {
    Already,
    Sudo,
}

impl Root {
    fn find() -> Option<Self> {
        if geteuid().is_root() {
            return Some(Self::Already);
        }
        exec::succeeds(Command::new("sudo").args(["-n", "true"])).then_some(Self::Sudo)
    }

    fn command(self, program: &str) -> Command {
        let mut command = Command::new(match self {
            Self::Already => "env",
            Self::Sudo => "sudo",
        });
        if matches!(self, Self::Sudo) {
            command.args(["-n", "env"]);
        }
        command.args(["DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", program]);
        command
    }
}

/// While it lives, Debian starts no server. A policy that somebody else set stays as it is.
struct NoServices {
    root: Root,
    ours: bool,
}

impl NoServices {
    fn begin(root: Root) -> Result<Self> {
        if Path::new(POLICY).exists() {
            return Ok(Self { root, ours: false });
        }
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, b"#!/bin/sh\nexit 101\n")?;
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o755))?;
        exec::capture(root.command("cp").arg(file.path()).arg(POLICY))?;
        Ok(Self { root, ours: true })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.ours && !exec::succeeds(self.root.command("rm").arg(POLICY)) {
            output::note(&format!(
                "cannot remove {POLICY}: remove it by hand, or Debian starts no server that you install"
            ));
        }
    }
}

fn existing(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(path)).filter(|path| path.exists())
}

/// What a variable names, for machines that have it elsewhere.
fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_file())
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// Python, if it has this module.
fn python_with(module: &str) -> Option<PathBuf> {
    let python = on_path("python3")?;
    exec::succeeds(Command::new(&python).args(["-c", &format!("import {module}")]))
        .then_some(python)
}

/// The programs of the newest PostgreSQL. Those on the PATH may be wrappers that choose another cluster.
fn newest_postgres(versions: &Path) -> Option<PathBuf> {
    let numbered = children(versions)
        .filter_map(|path| Some((path.file_name()?.to_str()?.parse::<u32>().ok()?, path)));
    let (_, newest) = numbered.filter(|(_, path)| path.join("bin/postgres").exists()).max()?;
    Some(newest.join("bin"))
}

fn faketime(libraries: &Path) -> Option<PathBuf> {
    children(libraries)
        .map(|directory| directory.join("faketime/libfaketime.so.1"))
        .find(|file| file.exists())
}

fn children(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_postgres_with_a_server_is_taken() {
        let versions = tempfile::tempdir().unwrap();
        for version in ["9", "15", "16"] {
            fs::create_dir_all(versions.path().join(version).join("bin")).unwrap();
        }
        assert_eq!(newest_postgres(versions.path()), None);
        for version in ["9", "15"] {
            fs::write(versions.path().join(version).join("bin/postgres"), "").unwrap();
        }
        assert_eq!(newest_postgres(versions.path()), Some(versions.path().join("15/bin")));
    }
}
