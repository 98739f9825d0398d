//! Other processes: this test binary again, in a role, to be killed or to live elsewhere.
//!
//! A module that needs one has a test `child`, which returns at once when no role is given.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

const ROLE: &str = "LAVRA_TEST_ROLE";
const FILE: &str = "LAVRA_TEST_FILE";
/// What libtest prints itself has no such beginning.
const MARK: &str = "@ ";

/// The role this process was started in, and its file.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(FILE)?.into()))
}

/// Tells the parent; the line is out when this returns.
pub(crate) fn tell(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{MARK}{line}").and_then(|()| out.flush()).unwrap();
}

/// The command that runs `{module}::child` in `role`.
pub(crate) fn command(module: &str, role: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments(module)).env(ROLE, role).env(FILE, file);
    command
}

pub(crate) fn arguments(module: &str) -> [String; 4] {
    let test = module.split_once("::").map_or(module, |(_crate, module)| module);
    ["--exact".into(), format!("{test}::child"), "--nocapture".into(), "--test-threads=1".into()]
}

/// Runs it to its end and returns what it told.
pub(crate) fn finish(mut command: Command) -> Vec<String> {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} ended with {status}\n{out}\n{errors}");
    out.lines().filter_map(|line| line.strip_prefix(MARK)).map(ToOwned::to_owned).collect()
}

/// A running child that is killed, at the latest, when it goes out of scope.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

pub(crate) fn start(mut command: Command) -> Running {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Running { child, lines }
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next thing it tells; `None` at its end.
    pub(crate) fn hear(&mut self) -> Option<String> {
        self.lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix(MARK).map(ToOwned::to_owned))
    }

    /// Kills it (SIGKILL) and returns what it had still told. Its last line may be half a line,
    /// which was not told.
    pub(crate) fn kill(mut self) -> Vec<String> {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended before it was killed: {ended:?}");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.hear()).collect()
    }
}

impl Running {
    /// Kills it and does not wait until it is gone.
    pub(crate) fn kill_and_leave(&mut self) {
        self.child.kill().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}
