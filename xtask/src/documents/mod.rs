//! What the documents promise: links that lead somewhere, and commands that do what they show.
//!
//! A block of commands is run if a comment stands before it:
//!
//! ```text
//! <!-- runnable -->                             what begins with `$ ` in the ```console block below is run
//! <!-- runnable in the background -->           the same, as in a terminal of its own: a server stays up
//! <!-- runnable on servers -->                  the same, with the PostgreSQL, PgBouncer and RabbitMQ of a team
//! <!-- runnable: fleet -->                      in the session `fleet`, which has a directory and a shell of its own
//! <!-- file shop.toml -->                       the block below is a file of the session (`: fleet` as above)
//! ```
//!
//! Blocks of one document with the same session share a directory and a shell, so what one sets or starts is
//! there for the next; what is still running at the end is stopped. Each command must end with 0, or with
//! what a following `$ echo $?` shows. Lines that a block shows must be in what the command says, numbers, times
//! and ids aside; a line `…` stands for anything. An id that was shown is, in later commands, the one that was
//! said in its place.

mod blocks;
mod compare;
pub(crate) mod links;
mod session;
mod shell;
mod team;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::apt::{self, Package};
use crate::workspace::Workspace;
use crate::{duckdb, exec, output};
use team::Team;

/// That every relative link and every anchor of the documents exists.
pub(crate) fn check_links(workspace: &Workspace) -> Result<()> {
    let broken = links::broken(workspace.root(), &documents(workspace.root())?)?;
    ensure!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
    Ok(())
}

/// Builds lavra, then runs the commands of those documents whose path has one of `names` in it.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<()> {
    duckdb::ensure(workspace)?;
    exec::run(workspace.cargo().args(["build", "--package", "lavra", "--bin", "lavra"]))?;
    test(workspace, names)
}

/// The same with the `lavra` that was built; no names are all documents.
pub(crate) fn test(workspace: &Workspace, names: &[String]) -> Result<()> {
    output::step("the links of the documents");
    check_links(workspace)?;
    // Readers have it.
    apt::ensure(&[Package::Curl])?;
    let mut team = None;
    let mut count = 0;
    for document in documents(workspace.root())? {
        let name =
            document.strip_prefix(workspace.root()).unwrap_or(&document).display().to_string();
        if !names.is_empty() && !names.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let text = std::fs::read_to_string(&document)?;
        for session in blocks::sessions(&text).with_context(|| name.clone())? {
            output::step(&format!("the commands of {name}{}", session.title()));
            if session.on_servers && team.is_none() {
                team = Some(Team::start()?);
            }
            let team = team.as_ref().filter(|_| session.on_servers);
            count += session::run(workspace, &session, team).with_context(|| name.clone())?;
        }
    }
    ensure!(
        count > 0,
        "no document has a command to run: is `<!-- runnable -->` before the blocks?"
    );
    output::note(&format!("{count} commands of the documents do what they show"));
    Ok(())
}

/// Every Markdown file of the checkout, without what was built or installed.
fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory)
            .with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let is_ours = !name.to_string_lossy().starts_with('.')
                && !["target", "node_modules"].iter().any(|built| name == *built);
            if entry.file_type()?.is_dir() && is_ours {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of all code blocks, without what they remark for the reader.
    fn code(text: &str) -> Vec<&str> {
        let mut is_code = false;
        let lines = text.lines().filter(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            is_code && !is_fence
        });
        lines
            .map(|line| line.split_once(" # ").map_or(line, |(typed, _)| typed).trim_end())
            .collect()
    }

    /// The commands of the English pages are run; those of the Portuguese ones are the same.
    #[test]
    fn translated_pages_have_the_commands_of_the_others() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (page, translated) in
            [("README.md", "README.pt-BR.md"), ("docs/getting-started.md", "docs/pt-BR/comecar.md")]
        {
            let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
            let (page, translated) = (read(page), read(translated));
            assert!(code(&page).len() > 20);
            assert_eq!(code(&page), code(&translated));
        }
    }
}
