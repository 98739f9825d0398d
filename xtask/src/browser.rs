//! Mission Control in a real browser: Debian's Chromium, driven from Node. The pictures of the pages that the
//! tests take stay in the target directory, for people to look at.

use anyhow::{Context, Result};

use crate::apt::{self, Package};
use crate::workspace::Workspace;
use crate::{exec, output};

/// What it needs of Debian.
pub(crate) const PACKAGES: &[Package] = &[Package::Npm, Package::Chromium];

/// Runs the browser's tests with the `lavra` that was built; `names` are parts of file names, none are all.
pub(crate) fn test(workspace: &Workspace, names: &[String]) -> Result<()> {
    apt::ensure(PACKAGES)?;
    let tests = workspace.root().join("crates/web/browser");
    install(workspace, &tests)?;
    let pictures = workspace.target().join("pictures");
    let mut node = workspace.command("node");
    node.current_dir(&tests).args(["--test", "--test-concurrency=1", "--test-reporter=spec"]);
    let mut files: Vec<_> = std::fs::read_dir(tests.join("tests"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let wanted = |file: &std::path::PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        names.is_empty() || names.iter().any(|part| name.contains(part.as_str()))
    };
    node.args(files.into_iter().filter(wanted));
    node.env("LAVRA_BIN", workspace.target().join("debug/lavra"))
        .env("LAVRA_CHROMIUM", Package::Chromium.path()?)
        .env("LAVRA_PICTURES", &pictures);
    exec::run(&mut node)?;
    output::note(&format!("pictures of the pages: {}", pictures.display()));
    Ok(())
}

/// Takes the pictures of the documents anew, with the `lavra` that was built.
pub(crate) fn pictures(workspace: &Workspace) -> Result<()> {
    apt::ensure(PACKAGES)?;
    let (tests, documents) =
        (workspace.root().join("crates/web/browser"), workspace.root().join("docs"));
    install(workspace, &tests)?;
    let mut node = workspace.command("node");
    node.current_dir(&tests).arg("pictures.mjs").arg(&documents);
    node.env("LAVRA_BIN", workspace.target().join("debug/lavra"))
        .env("LAVRA_CHROMIUM", Package::Chromium.path()?)
        .env("LAVRA_PICTURES", workspace.target().join("pictures"));
    exec::run(&mut node)
}

/// Milliseconds to the first paint of each page, the worst of a few.
pub(crate) fn paints(
    workspace: &Workspace,
    base: &str,
    paths: &[String],
) -> Result<Vec<(String, f64)>> {
    let tests = workspace.root().join("crates/web/browser");
    install(workspace, &tests)?;
    let mut node = workspace.command("node");
    node.current_dir(&tests).args(["paint.mjs", base]).args(paths);
    node.env("LAVRA_CHROMIUM", Package::Chromium.path()?);
    // Only the tests have these.
    node.env("LAVRA_BIN", "lavra").env("LAVRA_PICTURES", workspace.target().join("pictures"));
    let told: serde_json::Value = serde_json::from_str(&exec::capture(&mut node)?)?;
    let time = |path: &String| {
        let time = told[path.as_str()].as_f64().with_context(|| format!("{path} was not painted"));
        Ok((path.clone(), time?))
    };
    paths.iter().map(time).collect()
}

/// What the tests import, as the lock file has it.
fn install(workspace: &Workspace, tests: &std::path::Path) -> Result<()> {
    let (lock, installed) =
        (tests.join("package-lock.json"), tests.join("node_modules/.installed-lock.json"));
    let wanted = std::fs::read_to_string(&lock)?;
    if std::fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    output::step("installing what drives the browser, once");
    let mut npm = workspace.command("npm");
    npm.current_dir(tests).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    exec::run_beside_data(&mut npm).context("cannot install what drives the browser")?;
    std::fs::write(&installed, wanted)?;
    Ok(())
}
