//! What the program and its library need of a machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::exec;

/// The oldest C library that has every symbol the files of this directory ask for.
pub(super) fn glibc(directory: &Path) -> Result<String> {
    let mut objdump = Command::new("objdump");
    objdump.arg("--dynamic-syms");
    for file in std::fs::read_dir(directory)? {
        objdump.arg(file?.path());
    }
    newest(&exec::capture(&mut objdump)?).context("no symbol of the C library in the program")
}

fn newest(symbols: &str) -> Option<String> {
    let number = |word: &str| {
        let (major, minor) = word.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        number(&rest[..end.unwrap_or(rest.len())])
    });
    versions.max().map(|(major, minor)| format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_is_asked_for_counts() {
        let symbols = "0000 DF *UND* 0000 (GLIBC_2.2.5) free\n0000 DF *UND* (GLIBC_2.34) dlsym\n\
                       0000 (GLIBC_2.9) x\n0000 (GLIBC_PRIVATE) y\n(GLIBCXX_3.4.22) z";
        assert_eq!(newest(symbols).as_deref(), Some("2.34"));
        assert_eq!(newest("nothing"), None);
    }
}
