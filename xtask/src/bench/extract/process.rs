//! A process from its start to its end: how long it took, what it had of the processors, and the most
//! memory that it and its children had at once.
//!
//! The kernel keeps the highest mark of a single process, which is exact; of several processes the sum
//! is taken every few milliseconds, because their highest marks are not of one moment.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::interrupt::{self, Foreground};

const LOOK: Duration = Duration::from_millis(2);
const SAMPLE: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(3600);
/// In which Linux counts processor time for everybody.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub(crate) seconds: f64,
    pub(crate) processor_seconds: f64,
    pub(crate) peak_bytes: u64,
}

/// A process while it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Microseconds of the clock on the wall, as databases have them.
    pub(crate) moment: f64,
    pub(crate) processor_seconds: f64,
    pub(crate) bytes: u64,
}

/// Runs a command to its end. What it says is in its directory, and told if it fails.
pub(crate) fn measure(command: &mut Command, directory: &Path) -> Result<Process> {
    watch(command, directory, |_| {})
}

/// [`measure`], and tells of every sample.
pub(crate) fn watch(
    command: &mut Command,
    directory: &Path,
    mut tell: impl FnMut(Sample),
) -> Result<Process> {
    interrupt::check()?;
    let log = directory.join("log");
    let file = File::create(&log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut peak = Peak::default();
    let start = Instant::now();
    let mut child = command.spawn().context("cannot start")?;
    let foreground = Foreground::of(&child);
    let pid = Pid::from_child(&child);
    let mut sampled = start;
    // Left as it is when it has ended, so that its processor time can still be read.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(pid), ended)?.is_none() {
        if sampled.elapsed() >= SAMPLE {
            sampled = Instant::now();
            let bytes = peak.sample(child.id());
            let moment = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64() * 1e6;
            let processor_seconds = processor_seconds(child.id())?;
            tell(Sample { moment, processor_seconds, bytes });
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
        }
        std::thread::sleep(LOOK);
    }
    let seconds = start.elapsed().as_secs_f64();
    let processor_seconds = processor_seconds(child.id())?;
    drop(foreground);
    let status = child.wait()?;
    interrupt::check()?;
    if !status.success() {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        bail!("it failed ({status}):\n{}", lines[lines.len().saturating_sub(15)..].join("\n"));
    }
    Ok(Process { seconds, processor_seconds, peak_bytes: peak.bytes() })
}

/// What a process, with those of its children that have ended, has had of the processors.
pub(crate) fn processor_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    ticks(&stat).map(|ticks| ticks / TICKS_PER_SECOND).context("cannot read /proc/…/stat")
}

/// The name of the program may hold anything; the fields are counted from its end.
fn ticks(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    (0..4).map(|_| fields.next()?.parse::<f64>().ok()).sum()
}

#[derive(Debug, Default)]
struct Peak {
    highest_of_one: u64,
    highest_sum: u64,
    had_children: bool,
}

impl Peak {
    /// What all of them have now.
    fn sample(&mut self, root: u32) -> u64 {
        let mut sum = 0;
        let mut waiting = vec![root];
        while let Some(pid) = waiting.pop() {
            let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
            sum += kilobytes(&status, "VmRSS:").unwrap_or(0) * 1024;
            if pid == root {
                let highest = kilobytes(&status, "VmHWM:").unwrap_or(0) * 1024;
                self.highest_of_one = self.highest_of_one.max(highest);
            } else {
                self.had_children = true;
            }
            waiting.extend(children(pid));
        }
        self.highest_sum = self.highest_sum.max(sum);
        sum
    }

    fn bytes(&self) -> u64 {
        if self.had_children { self.highest_sum } else { self.highest_of_one }
    }
}

fn kilobytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Of all its threads, each of which may have started some.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_read_after_a_name_that_holds_anything() {
        let stat = "7 (a) 1 2 (b)) S 1 7 7 0 -1 4194304 1 2 3 4 100 20 3 4 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(127.0));
        assert_eq!(ticks("7 (a) S 1"), None);
    }

    #[test]
    fn memory_is_read_from_its_line() {
        let status = "Name:\tVmHWM:\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kilobytes(status, "VmHWM:"), Some(2048));
        assert_eq!(kilobytes(status, "VmSwap:"), None);
    }

    #[test]
    fn a_process_is_measured_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        let measured = measure(command.args(["-c", "sleep 0.2; true"]), directory.path()).unwrap();
        assert!((0.2..10.0).contains(&measured.seconds), "{measured:?}");
        assert!(measured.peak_bytes > 100 << 10, "{measured:?}");
    }

    #[test]
    fn a_process_that_fails_is_an_error_with_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        let error = measure(command.args(["-c", "echo no disk; exit 3"]), directory.path());
        assert!(error.unwrap_err().to_string().ends_with("no disk"));
    }
}
