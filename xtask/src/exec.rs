//! Commands run to their end in the foreground.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::interrupt::{self, Foreground};
use crate::output;

/// Runs a command with our own stdio and says which; a failure is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    output::step(&line(command));
    let status = wait(command)?;
    if !status.success() {
        // A terminal's Ctrl-C may have ended the command before our own watcher woke up.
        interrupt::sleep(Duration::from_millis(50))?;
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Like [`run`], but what the command has to say on stdout is shown on stderr: ours is for data.
pub(crate) fn run_beside_data(command: &mut Command) -> Result<()> {
    run(command.stdin(Stdio::null()).stdout(std::io::stderr()))
}

fn wait(command: &mut Command) -> Result<ExitStatus> {
    interrupt::check()?;
    let mut child = command.spawn().with_context(|| not_started(command))?;
    let foreground = Foreground::of(&child);
    let status = child.wait().with_context(|| format!("lost sight of `{}`", line(command)));
    drop(foreground);
    interrupt::check()?;
    status
}

/// What a command printed on stdout; its stderr is shown only when it fails.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    interrupt::check()?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().with_context(|| not_started(command))?;
    let foreground = Foreground::of(&child);
    let output =
        child.wait_with_output().with_context(|| format!("lost sight of `{}`", line(command)));
    drop(foreground);
    interrupt::check()?;
    let output = output?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", line(command), output.status, said.trim());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed no UTF-8", line(command)))
}

/// Whether a command runs and succeeds, in silence.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn not_started(command: &Command) -> String {
    format!("cannot start `{}`: is it installed and on the PATH?", line(command))
}

/// The command as a person would type it: the program without its directory.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let words = std::iter::once(program.file_name().unwrap_or(program.as_os_str()))
        .chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
