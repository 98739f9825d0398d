//! Python environments in the cache, each with a list of packages, made anew when its list has changed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::apt::{self, Package};
use crate::workspace::Workspace;
use crate::{exec, output};

/// The Python of the environment `name`, with the packages that the file `requirements` lists.
pub(crate) fn environment(
    workspace: &Workspace,
    name: &str,
    requirements: &Path,
) -> Result<PathBuf> {
    let environment = workspace.cache().join(name);
    let python = environment.join("bin/python");
    let installed = environment.join("requirements.txt");
    let wanted = std::fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    if std::fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    apt::ensure(&[Package::Python, Package::PythonVenv])?;
    output::step(&format!("installing the Python packages of {name}, once"));
    let mut venv = workspace.command("python3");
    exec::run_beside_data(venv.args(["-m", "venv", "--clear"]).arg(&environment))?;
    let mut pip = workspace.command(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    exec::run_beside_data(pip.arg("--requirement").arg(requirements))
        .with_context(|| format!("cannot install the Python packages of {name}"))?;
    std::fs::write(&installed, wanted)?;
    Ok(python)
}

/// What the tests look at Lavra's work with: stock DuckDB, and a bucket.
pub(crate) fn of_the_tests(workspace: &Workspace) -> Result<PathBuf> {
    environment(workspace, "test-python", &workspace.root().join("xtask/python/tests.txt"))
}
