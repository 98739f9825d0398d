//! Undoes what `cargo run` adds to the environment of `cargo xtask`.
//!
//! Some build scripts watch `CARGO_MANIFEST_DIR` and `CARGO_PKG_*`: passed on to an inner cargo, ours
//! would make every switch between `cargo xtask test` and a plain `cargo test` compile them anew. And
//! the library path that cargo sets would hide a binary that does not find its libraries by itself.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// A command with the environment that `cargo xtask` was typed in.
pub(crate) fn clean(program: impl AsRef<std::ffi::OsStr>, target: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, value) in std::env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        } else if text == "LD_LIBRARY_PATH" {
            match without_build_directories(&value, target) {
                Some(kept) => command.env(&name, kept),
                None => command.env_remove(&name),
            };
        }
    }
    command
}

fn without_build_directories(value: &OsString, target: &Path) -> Option<OsString> {
    let sysroot = std::env::var_os("RUSTUP_HOME").or_else(|| std::env::var_os("HOME"));
    let kept: Vec<_> = std::env::split_paths(value)
        .filter(|path| !path.starts_with(target))
        .filter(|path| {
            !(path.ends_with("lib") && sysroot.as_ref().is_some_and(|home| path.starts_with(home)))
        })
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if kept.is_empty() {
        return None;
    }
    std::env::join_paths(kept).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cargo_added_goes() {
        let target = Path::new("/build/target");
        let value = OsString::from("/build/target/debug/deps:/build/target/debug:/opt/oracle/lib");
        assert_eq!(without_build_directories(&value, target).unwrap(), "/opt/oracle/lib");
        assert_eq!(without_build_directories(&OsString::from("/build/target/debug"), target), None);
    }
}
