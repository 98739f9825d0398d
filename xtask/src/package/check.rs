//! A package as a machine gets it: installed into a scratch root by the package manager, tried there, and removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;

use super::{DOCUMENTS, EXAMPLES, NOTICES, PICTURES, SHELLS, UNITS, VERSION};
use crate::apt::Package;
use crate::documents::links;
use crate::workspace::Workspace;
use crate::{duckdb, exec, output};

/// What judges units and manual pages.
pub(super) const PACKAGES: &[Package] = &[Package::Systemd, Package::Groff];

const MANUAL: &str = "usr/share/man/man1/";

pub(super) fn installed(workspace: &Workspace, package: &Path) -> Result<()> {
    contents(package)?;
    let machine = Machine::new(workspace)?;
    machine.dpkg(&["--install"], Some(package))?;
    runs(&machine)?;
    units(&machine)?;
    manual(&machine)?;
    documents(&machine)?;
    exec::capture(machine.host("bash").arg("-n").arg(machine.path(SHELLS[0].1)))
        .context("the completions of bash are no script")?;
    settings_stay(&machine, package)?;
    leaves_nothing(&machine)?;
    output::note("installed, tried and removed: as it should be");
    Ok(())
}

/// A root directory with a package manager's books in it, and a place beside it to work in.
struct Machine<'a> {
    workspace: &'a Workspace,
    place: tempfile::TempDir,
}

impl<'a> Machine<'a> {
    fn new(workspace: &'a Workspace) -> Result<Self> {
        let machine = Self { workspace, place: tempfile::tempdir()? };
        for directory in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
            fs::create_dir_all(machine.path(directory))?;
        }
        fs::write(machine.path("var/lib/dpkg/status"), "")?;
        fs::write(machine.path("var/lib/dpkg/available"), "")?;
        fs::create_dir(machine.work())?;
        Ok(machine)
    }

    fn root(&self) -> std::path::PathBuf {
        self.place.path().join("root")
    }

    fn path(&self, inside: &str) -> std::path::PathBuf {
        self.root().join(inside)
    }

    fn work(&self) -> std::path::PathBuf {
        self.place.path().join("work")
    }

    /// A command of this machine, beside the root and without a way to the build's own libraries.
    fn host(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.workspace.command(program);
        command.current_dir(self.work()).env_remove("LD_LIBRARY_PATH");
        command
    }

    fn lavra(&self, args: &[&str]) -> Result<String> {
        let mut command = self.host(self.path("usr/bin/lavra"));
        command.args(["--database", "lavra.duckdb", "--artefacts", "artefacts", "--config"]);
        exec::capture(command.arg(self.path("etc/lavra/lavra.toml")).args(args))
    }

    /// Its dependencies are not in the root; its scripts run outside and know it (`DPKG_ROOT`).
    fn dpkg(&self, action: &[&str], package: Option<&Path>) -> Result<String> {
        let mut command = if geteuid().is_root() {
            self.host("dpkg")
        } else {
            let mut command = self.host("unshare");
            command.args(["--map-root-user", "dpkg"]);
            command
        };
        command.arg(format!("--root={}", self.root().display()));
        command.args(["--force-depends", "--force-script-chrootless", "--force-confold"]);
        exec::capture(command.args(action).args(package))
    }
}

/// Every file that is expected, no other, all of them root's and written by nobody else.
fn contents(package: &Path) -> Result<()> {
    let said = exec::capture(Command::new("dpkg-deb").arg("--contents").arg(package))?;
    let mut files = BTreeSet::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [mode, owner, _, _, _, path, ..] = words.as_slice() else { continue };
        let others_write = mode.starts_with('-') && mode.get(5..).is_some_and(|m| m.contains('w'));
        ensure!(*owner == "root/root" && !others_write, "not root's alone: {line}");
        ensure!(
            *path != "./etc/lavra/lavra.env" || *mode == "-rw-------",
            "others may read it: {line}"
        );
        if !mode.starts_with('d') {
            files.insert(path.trim_start_matches("./").to_owned());
        }
    }
    let (pages, others): (BTreeSet<_>, BTreeSet<_>) =
        files.into_iter().partition(|path| path.starts_with(MANUAL));
    let expected = expected();
    let missing: Vec<_> = expected.difference(&others).collect();
    let unexpected: Vec<_> = others.difference(&expected).collect();
    ensure!(
        missing.is_empty() && unexpected.is_empty(),
        "without {missing:?}, with {unexpected:?}"
    );
    for page in ["lavra", "lavra-serve", "lavra-extract-run"] {
        ensure!(pages.contains(&format!("{MANUAL}{page}.1.gz")), "no manual page of {page}");
    }
    Ok(())
}

fn expected() -> BTreeSet<String> {
    let units = UNITS.map(|unit| format!("usr/lib/systemd/system/{unit}.service"));
    let completions = SHELLS.map(|(_, path)| path.to_owned());
    let documents = DOCUMENTS.map(|page| format!("usr/share/doc/lavra/{page}"));
    let pictures = PICTURES.map(|file| format!("usr/share/doc/lavra/pictures/{file}"));
    let examples = EXAMPLES.into_iter().flat_map(|(_, files)| files);
    let examples = examples.map(|file| format!("usr/share/doc/lavra/examples/{file}"));
    let others = [
        "etc/lavra/lavra.env",
        "etc/lavra/lavra.toml",
        "usr/bin/lavra",
        "usr/lib/lavra/lavra",
        &format!("usr/lib/lavra/{}", duckdb::LIBRARY),
        "usr/share/doc/lavra/changelog.gz",
        "usr/share/doc/lavra/copyright",
        &format!("{NOTICES}.gz"),
    ];
    let others = others.map(str::to_owned);
    let documents = documents.into_iter().chain(pictures).chain(examples);
    units.into_iter().chain(completions).chain(documents).chain(others).collect()
}

/// No page leads nowhere.
fn documents(machine: &Machine<'_>) -> Result<()> {
    let place = machine.path("usr/share/doc/lavra");
    let broken = links::broken(&place, &DOCUMENTS.map(|page| place.join(page)))?;
    ensure!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
    Ok(())
}

/// The program starts, with the library beside it and no other, and does something with it.
fn runs(machine: &Machine<'_>) -> Result<()> {
    let version = exec::capture(machine.host(machine.path("usr/bin/lavra")).arg("--version"))?;
    ensure!(version.trim() == format!("lavra {VERSION}"), "it says it is {version}");
    let mut loads = machine.host(machine.path("usr/bin/lavra"));
    let loaded = exec::capture(loads.env("LD_TRACE_LOADED_OBJECTS", "1"))?;
    ensure!(!loaded.contains("not found"), "a library is missing:\n{loaded}");
    let library = fs::canonicalize(machine.path("usr/lib/lavra").join(duckdb::LIBRARY))?;
    let found = loaded.lines().find(|line| line.contains(duckdb::LIBRARY)).unwrap_or_default();
    let path = found.split_whitespace().nth(2).unwrap_or_default();
    ensure!(fs::canonicalize(path).is_ok_and(|path| path == library), "another library: {found}");

    let answer = machine.lavra(&["sql", "SELECT 6 * 7 AS product"])?;
    ensure!(answer.split_whitespace().eq(["product", "42"]), "asked for 6 * 7, it says {answer}");
    let doctor = machine.lavra(&["doctor"])?;
    ensure!(doctor.contains("answers"), "doctor says {doctor}");
    Ok(())
}

/// Judged where they are, but for the program: this machine has it in the scratch root.
fn units(machine: &Machine<'_>) -> Result<()> {
    let mut analyze = machine.host("systemd-analyze");
    analyze.args(["verify", "--man=no", "--recursive-errors=no"]);
    for unit in UNITS {
        let unit = format!("{unit}.service");
        let text = fs::read_to_string(machine.path("usr/lib/systemd/system").join(&unit))?;
        let program = machine.path("usr/bin/lavra").display().to_string();
        let copy = machine.work().join(&unit);
        fs::write(
            &copy,
            text.replace("ExecStart=/usr/bin/lavra", &format!("ExecStart={program}")),
        )?;
        analyze.arg(copy);
    }
    exec::capture(&mut analyze).context("systemd does not take the units").map(drop)
}

/// Every page renders, and without a warning.
fn manual(machine: &Machine<'_>) -> Result<()> {
    let mut pages: Vec<_> =
        fs::read_dir(machine.path(MANUAL))?.map(|page| Ok(page?.path())).collect::<Result<_>>()?;
    pages.sort();
    for page in pages {
        let text = exec::capture(Command::new("gzip").arg("-dc").arg(&page))?;
        let plain = machine.work().join("page.1");
        fs::write(&plain, text)?;
        // -k: it is UTF-8. What groff has to say goes to stderr, whatever it makes of the page.
        let script = r#"groff -k -ww -man -Tutf8 -P-cbou "$1" 2>&1 >"$2""#;
        let rendered = machine.work().join("page.txt");
        let mut groff = machine.host("sh");
        groff.args(["-c", script, "sh"]).arg(&plain).arg(&rendered);
        let warnings = exec::capture(&mut groff)?;
        ensure!(warnings.is_empty(), "{}: {warnings}", page.display());
        let shown = fs::read_to_string(&rendered)?;
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
            ensure!(shown.contains(heading), "{} shows no {heading}", page.display());
        }
    }
    Ok(())
}

/// What a person has changed is still there after the next version.
fn settings_stay(machine: &Machine<'_>, package: &Path) -> Result<()> {
    let settings = machine.path("etc/lavra/lavra.toml");
    let changed = format!("{}# changed\n", fs::read_to_string(&settings)?);
    fs::write(&settings, &changed)?;
    machine.dpkg(&["--install"], Some(package))?;
    ensure!(fs::read_to_string(&settings)? == changed, "lavra.toml was overwritten");
    Ok(())
}

fn leaves_nothing(machine: &Machine<'_>) -> Result<()> {
    let data = machine.path("var/lib/lavra");
    fs::create_dir_all(&data)?;
    machine.dpkg(&["--remove", "lavra"], None)?;
    ensure!(machine.path("etc/lavra/lavra.toml").exists(), "removed with the settings");
    machine.dpkg(&["--purge", "lavra"], None)?;
    for gone in ["etc/lavra", "usr/lib/lavra", "usr/bin/lavra"] {
        ensure!(!machine.path(gone).exists(), "{gone} is still there after --purge");
    }
    ensure!(data.exists(), "the data went with the package");
    Ok(())
}
