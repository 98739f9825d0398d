//! `cargo xtask package`: a Debian package of the program, with the DuckDB library that the tests used beside it.
//!
//! ```text
//! /usr/bin/lavra -> ../lib/lavra/lavra
//! /usr/lib/lavra/{lavra, libduckdb.so}        the program looks for its library beside itself
//! /usr/lib/systemd/system/lavra*.service      serve, runner, worker, writer; none is started by itself
//! /etc/lavra/{lavra.toml, lavra.env}          settings and secrets, which people change
//! /usr/share/…                                manual pages, completions, copyright, changelog, docs, what monitors it
//! ```
//!
//! No package leaves here that was not installed into a scratch root and tried there: see [`check`].

mod check;
mod depends;
mod notices;
mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::documents::links;
use crate::workspace::Workspace;
use crate::{apt, duckdb, exec, output};
use tree::Tree;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const UNITS: [&str; 4] = ["lavra", "lavra-runner", "lavra-worker", "lavra-writer"];
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/lavra"),
    ("zsh", "usr/share/zsh/vendor-completions/_lavra"),
    ("fish", "usr/share/fish/vendor_completions.d/lavra.fish"),
];

/// The pages for people who run it.
const DOCUMENTS: [&str; 18] = [
    "api.md",
    "configuration.md",
    "errors.md",
    "extraction.md",
    "fleet-errors.md",
    "fleet.md",
    "getting-started.md",
    "installing.md",
    "mission-control.md",
    "operations.md",
    "security.md",
    "sources.md",
    "tasks.md",
    "webhooks.md",
    "worker.md",
    "workers.md",
    "world.md",
    "writer.md",
];

/// The licences of the libraries that are compiled in.
const NOTICES: &str = "usr/share/doc/lavra/third-party";

const PICTURES: [&str; 4] = ["bank.png", "first-steps.png", "mission.png", "overview.png"];

/// What those pages point to, by where it is in the sources.
const EXAMPLES: [(&str, &[&str]); 2] = [
    ("examples", &["fleet_worker.py", "worker.py"]),
    ("packaging", &["grafana/lavra.json", "prometheus/alerts.yml", "prometheus/scrape.yml"]),
];

/// Which build of `lavra` is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Release,
    /// Sooner there and not compressed: for tests.
    Debug,
}

impl Profile {
    fn directory(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Debug => "debug",
        }
    }
}

/// Builds the program and its package, and prints where it is.
pub(crate) fn run(workspace: &Workspace, profile: Profile) -> Result<()> {
    duckdb::ensure(workspace)?;
    let mut build = workspace.cargo();
    build.args(["build", "--locked", "--package", "lavra", "--bin", "lavra"]);
    if profile == Profile::Release {
        build.arg("--release");
    }
    exec::run_beside_data(&mut build)?;
    let package = checked(workspace, profile)?;
    output::data(&package.display().to_string());
    Ok(())
}

/// Packs, installs and tries the `lavra` that the tests have built.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    checked(workspace, Profile::Debug).map(drop)
}

fn checked(workspace: &Workspace, profile: Profile) -> Result<PathBuf> {
    apt::ensure(check::PACKAGES)?;
    let package = pack(workspace, profile)?;
    output::step(&format!("installing {} into a scratch root", package.display()));
    check::installed(workspace, &package).context("the package is not as it should be")?;
    Ok(package)
}

fn pack(workspace: &Workspace, profile: Profile) -> Result<PathBuf> {
    let built = workspace.target().join(profile.directory());
    let sources = workspace.root().join("packaging");
    let scratch = tempfile::tempdir()?;
    let tree = Tree::new(scratch.path().join("lavra"))?;
    program(&tree, &built)?;
    units_and_settings(&tree, &sources)?;
    written_by_the_program(&tree, &built.join("lavra"), scratch.path())?;
    documents(&tree, workspace.root())?;
    tree.put(NOTICES, &notices::text(workspace)?, 0o644)?;
    tree.compress(NOTICES)?;
    about(&tree, &sources)?;

    let name = format!("lavra_{VERSION}_amd64.deb");
    let package = workspace.target().join("package").join(profile.directory()).join(name);
    std::fs::create_dir_all(package.parent().context("a package without a directory")?)?;
    let mut dpkg = workspace.command("dpkg-deb");
    dpkg.env("SOURCE_DATE_EPOCH", last_change(workspace));
    dpkg.args(["--root-owner-group", if profile == Profile::Debug { "-Znone" } else { "-Zxz" }]);
    exec::run_beside_data(dpkg.arg("--build").arg(tree.path()).arg(&package))?;
    Ok(package)
}

fn program(tree: &Tree, built: &Path) -> Result<()> {
    tree.copy(&built.join("lavra"), "usr/lib/lavra/lavra", 0o755)?;
    tree.copy(&built.join(duckdb::LIBRARY), &format!("usr/lib/lavra/{}", duckdb::LIBRARY), 0o644)?;
    let program = tree.path().join("usr/lib/lavra/lavra");
    exec::capture(Command::new("strip").arg("--strip-debug").arg(program))?;
    tree.link("../lib/lavra/lavra", "usr/bin/lavra")
}

fn units_and_settings(tree: &Tree, sources: &Path) -> Result<()> {
    for unit in UNITS {
        let unit = format!("{unit}.service");
        let to = format!("usr/lib/systemd/system/{unit}");
        tree.copy(&sources.join("systemd").join(unit), &to, 0o644)?;
    }
    tree.copy(&sources.join("config/lavra.toml"), "etc/lavra/lavra.toml", 0o644)?;
    tree.copy(&sources.join("config/lavra.env"), "etc/lavra/lavra.env", 0o600)
}

/// Completions and manual pages, which the program knows by itself.
fn written_by_the_program(tree: &Tree, lavra: &Path, scratch: &Path) -> Result<()> {
    let command = || {
        let mut command = Command::new(lavra);
        command.current_dir(scratch);
        command
    };
    for (shell, place) in SHELLS {
        tree.put(place, &exec::capture(command().args(["completions", shell]))?, 0o644)?;
    }
    let pages = scratch.join("man");
    std::fs::create_dir(&pages)?;
    exec::capture(command().arg("man").arg(&pages))?;
    for page in std::fs::read_dir(&pages)? {
        let page = page?;
        let to = format!("usr/share/man/man1/{}", page.file_name().to_string_lossy());
        tree.copy(&page.path(), &to, 0o644)?;
        tree.compress(&to)?;
    }
    Ok(())
}

fn documents(tree: &Tree, root: &Path) -> Result<()> {
    tree.copy(&root.join("packaging/debian/copyright"), "usr/share/doc/lavra/copyright", 0o644)?;
    for page in DOCUMENTS {
        let text = std::fs::read_to_string(root.join("docs").join(page))
            .with_context(|| format!("cannot read docs/{page}"))?;
        let text = text.replace("](../packaging/", "](examples/");
        let text = text.replace("](../examples/", "](examples/");
        tree.put(&format!("usr/share/doc/lavra/{page}"), &text, 0o644)?;
    }
    for picture in PICTURES {
        let to = format!("usr/share/doc/lavra/pictures/{picture}");
        tree.copy(&root.join("docs/pictures").join(picture), &to, 0o644)?;
    }
    for (from, examples) in EXAMPLES {
        for example in examples {
            let to = format!("usr/share/doc/lavra/examples/{example}");
            tree.copy(&root.join(from).join(example), &to, 0o644)?;
        }
    }
    // What leads to the sources leads nowhere from here.
    for page in DOCUMENTS {
        let page = format!("usr/share/doc/lavra/{page}");
        let text = links::without_broken(&tree.path().join(&page))?;
        tree.put(&page, &text, 0o644)?;
    }
    tree.copy(&root.join("CHANGELOG.md"), "usr/share/doc/lavra/changelog", 0o644)?;
    tree.compress("usr/share/doc/lavra/changelog")
}

/// What the package manager reads.
fn about(tree: &Tree, sources: &Path) -> Result<()> {
    let debian = sources.join("debian");
    let control = std::fs::read_to_string(debian.join("control"))
        .context("cannot read packaging/debian/control")?
        .replace("@VERSION@", VERSION)
        .replace("@SIZE@", &tree.kilobytes()?.to_string())
        .replace("@GLIBC@", &depends::glibc(&tree.path().join("usr/lib/lavra"))?);
    tree.put("DEBIAN/control", &control, 0o644)?;
    tree.copy(&debian.join("conffiles"), "DEBIAN/conffiles", 0o644)?;
    for script in ["postinst", "prerm", "postrm"] {
        tree.copy(&debian.join(script), &format!("DEBIAN/{script}"), 0o755)?;
    }
    Ok(())
}

/// When the last change was made: the same sources make the same package.
fn last_change(workspace: &Workspace) -> String {
    let mut git = workspace.command("git");
    let said = exec::capture(git.args(["log", "-1", "--format=%ct"]));
    // Sources without a history: the day of this program's first version is as good.
    said.map_or_else(|_| "1767225600".to_owned(), |time| time.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_units() -> Vec<String> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd");
        let read = |unit| std::fs::read_to_string(sources.join(format!("{unit}.service"))).unwrap();
        UNITS.map(read).to_vec()
    }

    #[test]
    fn every_unit_is_shut_in_alike() {
        let mark = "# The same in every unit of lavra, from here on.\n";
        let shut_in = |unit: &String| unit.split_once(mark).unwrap().1.to_owned();
        let first = shut_in(&of_units()[0]);
        assert!(of_units().iter().all(|unit| shut_in(unit) == first));
        for line in ["ProtectSystem=strict", "NoNewPrivileges=yes", "StateDirectory=lavra"] {
            assert!(first.lines().any(|one| one == line), "{line}");
        }
    }

    #[test]
    fn a_unit_is_waited_for_longer_than_its_attempts_have() {
        for unit in of_units() {
            let line = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
            let seconds: u32 = line.trim_end_matches('s').parse().unwrap();
            // runner.grace_seconds, its last writes, and the processes that wait for each other.
            assert!(seconds >= 30, "{line}");
        }
    }
}
