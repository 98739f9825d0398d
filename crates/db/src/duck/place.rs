//! Whether a path can be a database at all, said in words before DuckDB says it in its own.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::{Error, Result};

/// Where every DuckDB file says what it is.
const MARK: &[u8] = b"DUCK";
const AT: usize = 8;

/// What is there already is a DuckDB file. Only for whoever has the lock: to close a file gives
/// away what DuckDB in the same process has locked of it.
pub(super) fn check(path: &Path) -> Result<()> {
    let name = path.display();
    let refused = |text: String| Err(Error::Config(text));
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return refused(format!(
                "{name} cannot be read: {error}; run as its owner, or name another file with --database"
            ));
        }
    };
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return refused(format!(
            "{name} is a directory: --database takes a file, such as {name}/lavra.duckdb"
        ));
    }
    let mut head = Vec::new();
    let read = file.by_ref().take((AT + MARK.len()) as u64).read_to_end(&mut head);
    match read {
        Ok(0) => refused(format!(
            "{name} is empty, which no DuckDB file is: remove it and a new one is made, or name \
             another with --database"
        )),
        Ok(_) if head.get(AT..) != Some(MARK) => refused(format!(
            "{name} is not a DuckDB file: name another with --database; one that is not there yet is made"
        )),
        Ok(_) => Ok(()),
        Err(source) => {
            Err(Error::Io { operation: "read the head of", path: path.to_owned(), source })
        }
    }
}

/// The directory of a database cannot be used as it is.
pub(super) fn directory(path: &Path, error: std::io::Error) -> Error {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let directory = above.unwrap_or(Path::new(".")).display();
    match error.kind() {
        ErrorKind::NotFound => Error::Config(format!(
            "the directory {directory} is not there: make it, or name another file with --database"
        )),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Error::Config(format!(
            "{directory} cannot be written to: {error}; a database has its log and its lock beside \
             it: run as the owner of that directory, or name another file with --database"
        )),
        _ => Error::Io { operation: "open", path: path.to_owned(), source: error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_database_is_told_from_what_may_be_one() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("text"), "hello, this is text").unwrap();
        std::fs::write(path("short"), "short").unwrap();
        std::fs::write(path("empty"), "").unwrap();
        std::fs::write(path("duck"), b"12345678DUCKmore").unwrap();
        for (name, says) in [
            ("text", "not a DuckDB file"),
            ("short", "not a DuckDB file"),
            ("empty", "is empty"),
            ("", "is a directory"),
        ] {
            let told = check(&path(name)).unwrap_err().to_string();
            assert!(told.contains(says) && told.contains("--database"), "{told}");
        }
        check(&path("duck")).unwrap();
        check(&path("not there yet")).unwrap();
    }
}
