//! The one place that prints: data to stdout, everything else to stderr, so that
//! `eval "$(cargo xtask servers …)"` and a piped bench table hold nothing but data.

use std::io::Write;

/// A line of data for stdout. A reader that went away is no error of ours.
pub(crate) fn data(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// What is being done now, for stderr.
pub(crate) fn step(text: &str) {
    eprintln!("==> {text}");
}

/// Anything else a person should read, for stderr.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
