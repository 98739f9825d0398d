//! A shell that commands are typed into, one after the other: what one sets or starts is there for the next.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::workspace::Workspace;
use crate::{http, interrupt};

/// The longest that a command of a document may take.
const PATIENCE: Duration = Duration::from_secs(240);
/// The longest until a server answers, and until it has stopped.
const START: Duration = Duration::from_secs(60);
/// What those say that listen nowhere, when they are there: `lavra runner`, `examples/worker.py`.
const THERE: [&str; 2] = ["running tasks", "takes tasks"];

pub(super) struct Shell {
    bash: Child,
    stdin: ChildStdin,
    records: PathBuf,
    count: usize,
}

/// How a command ended.
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) said: String,
}

impl Shell {
    /// In `directory`; what it writes down of its commands goes to `records`. Programs of these directories are
    /// found first, but for `lavra`.
    pub(super) fn start(
        workspace: &Workspace,
        directory: &Path,
        records: &Path,
        programs: &[&Path],
        variables: &[(&str, String)],
    ) -> Result<Self> {
        let mut command = workspace.command("bash");
        command.args(["--noprofile", "--norc"]).current_dir(directory);
        for (name, _) in std::env::vars_os() {
            let ours = ["LAVRA_", "DB_", "API_PG_"];
            if ours.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let before = std::env::var_os("PATH").unwrap_or_default();
        let lavra = std::iter::once(workspace.target().join("debug"));
        let programs = lavra.chain(programs.iter().map(|directory| directory.to_path_buf()));
        command.env("PATH", std::env::join_paths(programs.chain(std::env::split_paths(&before)))?);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut bash = command.spawn().context("cannot start bash")?;
        let stdin = bash.stdin.take().context("bash has no stdin")?;
        Ok(Self { bash, stdin, records: records.to_owned(), count: 0 })
    }

    /// Types a command and waits for its end.
    pub(super) fn run(&mut self, text: &str) -> Result<Ended> {
        let (said, ended) = self.type_in(text, "$?")?;
        let code = self.until_written(&ended)?;
        let code = code.trim().parse().context("bash wrote no exit code")?;
        Ok(Ended { code, said: std::fs::read_to_string(said).unwrap_or_default() })
    }

    /// Types a command that stays, and waits until it answers on a port of its own, or says that it is there.
    pub(super) fn run_in_the_background(&mut self, text: &str) -> Result<Ended> {
        let text = text.trim_end().trim_end_matches('&');
        let (said, begun) = self.type_in(&format!("{text} &"), "$!")?;
        let process: u32 = self.until_written(&begun)?.trim().parse().context("no process id")?;
        let begun = Instant::now();
        let words = || std::fs::read_to_string(&said).unwrap_or_default();
        while !answers(process) && !THERE.iter().any(|said| words().contains(said)) {
            if !Path::new("/proc").join(process.to_string()).join("fd").exists() {
                bail!("it ended instead of staying:\n{}", words());
            }
            if begun.elapsed() > START {
                bail!("it answers on no port after {} s:\n{}", START.as_secs(), words());
            }
            interrupt::sleep(Duration::from_millis(50))?;
        }
        Ok(Ended { code: 0, said: words() })
    }

    /// The file with what it says, and the file that `result` is in afterwards.
    fn type_in(&mut self, text: &str, result: &str) -> Result<(PathBuf, PathBuf)> {
        self.count += 1;
        let said = self.records.join(format!("{}.said", self.count));
        let ended = self.records.join(format!("{}.ended", self.count));
        let script = format!(
            "{{ {text}\n}} >'{said}' 2>&1 </dev/null\necho {result} >'{ended}.new'\nmv '{ended}.new' '{ended}'\n",
            said = said.display(),
            ended = ended.display(),
        );
        self.stdin.write_all(script.as_bytes()).context("bash reads no more")?;
        Ok((said, ended))
    }

    fn until_written(&mut self, file: &Path) -> Result<String> {
        let begun = Instant::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(file) {
                return Ok(text);
            }
            if let Some(status) = self.bash.try_wait()? {
                bail!("the shell ended ({status})");
            }
            if begun.elapsed() > PATIENCE {
                bail!("it goes on for longer than {} s", PATIENCE.as_secs());
            }
            interrupt::sleep(Duration::from_millis(20))?;
        }
    }
}

/// What is still running is stopped; what does not stop is killed.
impl Drop for Shell {
    fn drop(&mut self) {
        let Some(group) = Pid::from_raw(self.bash.id() as i32) else { return };
        // bash is our child and not waited for yet, so the group is still its own.
        let _ended_before = kill_process_group(group, Signal::TERM);
        let begun = Instant::now();
        let _ = self.bash.try_wait();
        while test_kill_process_group(group).is_ok() && begun.elapsed() < START {
            let _ = self.bash.try_wait();
            std::thread::sleep(Duration::from_millis(50));
        }
        let _gone = kill_process_group(group, Signal::KILL);
        let _ = self.bash.wait();
    }
}

/// Whether a process answers HTTP on a port that it listens on.
fn answers(process: u32) -> bool {
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    listening(&table, &sockets).any(|port| http::send(port, "GET", "/", &[], "").is_ok())
}

/// The ports of these sockets that are listened on, of the kernel's table.
fn listening<'a>(table: &'a str, sockets: &'a [String]) -> impl Iterator<Item = u16> + 'a {
    table.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
        let is_ours = *state == "0A" && sockets.iter().any(|socket| socket == inode);
        let port = u16::from_str_radix(local.split_once(':')?.1, 16).ok()?;
        is_ours.then_some(port)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_listened_on_by_its_socket() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n";
        let of = |socket: &str| listening(table, &[socket.to_owned()]).collect::<Vec<_>>();
        assert_eq!(of("4711"), [8080]);
        assert_eq!(of("4712"), <[u16; 0]>::default());
        assert_eq!(of("1"), <[u16; 0]>::default());
    }
}
