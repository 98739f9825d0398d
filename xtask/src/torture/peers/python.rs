//! The peers, each in an environment of its own: what one of them needs may be too new for another.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::torture::half::World;
use crate::workspace::Workspace;
use crate::{exec, python};

#[derive(Debug, Clone, Copy)]
pub(super) enum Peer {
    Dlt,
    Airbyte { workers: u8 },
    Scrapy,
}

impl Peer {
    /// Airbyte's twice: the more slices are read at once, the later its state can say that one is done.
    pub(super) const ALL: [Self; 4] =
        [Self::Dlt, Self::Airbyte { workers: 16 }, Self::Airbyte { workers: 2 }, Self::Scrapy];

    pub(super) fn install(self, workspace: &Workspace) -> Result<Installed> {
        let scripts = workspace.root().join("bench/killed");
        // dlt's is that of the bench.
        let (name, requirements) = match self {
            Self::Dlt => ("bench-python", "../extract/requirements.txt"),
            Self::Airbyte { .. } => ("airbyte-python", "airbyte.txt"),
            Self::Scrapy => ("scrapy-python", "scrapy.txt"),
        };
        let python = python::environment(workspace, name, &scripts.join(requirements))?;
        let ask = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))";
        let version = exec::capture(Command::new(&python).args(["-c", ask, self.package()]))?;
        Ok(Installed { peer: self, python, scripts, version: version.trim().to_owned() })
    }

    fn package(self) -> &'static str {
        match self {
            Self::Dlt => "dlt",
            Self::Airbyte { .. } => "airbyte-cdk",
            Self::Scrapy => "scrapy",
        }
    }
}

/// A peer that can be run.
#[derive(Debug)]
pub(super) struct Installed {
    peer: Peer,
    python: PathBuf,
    scripts: PathBuf,
    /// As the package that is installed says.
    version: String,
}

impl Installed {
    pub(super) fn name(&self) -> &'static str {
        self.peer.package()
    }

    pub(super) fn title(&self) -> String {
        let version = &self.version;
        match self.peer {
            Peer::Dlt => format!("dlt {version}"),
            Peer::Airbyte { workers } => format!("Airbyte CDK {version}, {workers} workers"),
            Peer::Scrapy => format!("Scrapy {version}, JOBDIR"),
        }
    }

    /// The extraction, the first time as well as again.
    pub(super) fn command(&self, world: &World) -> Command {
        let (base, directory) = (world.base(), world.directory());
        let mut command = self.python(world);
        let mut script = |name: &str| {
            command.arg(self.scripts.join(name)).args(["--base", &base, "--directory"]);
            command.arg(directory);
        };
        match self.peer {
            Peer::Dlt => script("dlt_rest.py"),
            Peer::Airbyte { workers } => {
                script("airbyte.py");
                command.args(["--workers", &workers.to_string()]);
            }
            Peer::Scrapy => {
                command.args(["-m", "scrapy", "runspider"]).arg(self.scripts.join("spider.py"));
                command.args(["-a", &format!("base={base}")]);
                command.args(["-s", &format!("JOBDIR={}", directory.join("job").display())]);
                command.arg("-o").arg(directory.join("stored.jsonl"));
            }
        }
        command
    }

    /// The keys of the records that it has left.
    pub(super) fn stored(&self, world: &World) -> Result<HashSet<String>> {
        let mut command = self.python(world);
        command.arg(self.scripts.join("stored.py")).arg(world.directory());
        Ok(exec::capture(&mut command)?.lines().map(str::to_owned).collect())
    }

    /// At home in the directory of the run, and with no proxy between it and the world.
    fn python(&self, world: &World) -> Command {
        let mut command = Command::new(&self.python);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("HOME", world.directory());
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }
}
