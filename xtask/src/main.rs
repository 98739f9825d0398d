//! `cargo xtask`: what building, testing, checking and measuring Lavra needs beyond plain cargo.
//!
//! It runs on a machine that has a Rust toolchain and Debian's package manager and nothing else, so
//! every command first gets what it is missing: see [`apt`], [`duckdb`] and [`tools`]. Servers are
//! private: free loopback ports, temporary directories, an unprivileged user, gone at the end.

mod apt;
mod bench;
mod browser;
mod check;
mod cli;
mod conformance;
mod daemon;
mod demo;
mod documents;
mod duckdb;
mod environment;
mod exec;
mod fuzz;
mod http;
mod interrupt;
#[cfg(test)]
mod monitoring;
mod output;
mod package;
mod ports;
mod python;
mod random;
mod scratch;
mod servers;
mod test;
mod tools;
mod torture;
mod user;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use cli::Task;
use interrupt::Interrupted;
use workspace::Workspace;

fn main() -> ExitCode {
    let task = match cli::parse(std::env::args().skip(1)) {
        Ok(task) => task,
        Err(usage) => {
            output::note(&format!("{usage}\n\n{}", cli::HELP));
            return ExitCode::from(2);
        }
    };
    match perform(task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() => {
            output::note("interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> Result<()> {
    interrupt::watch()?;
    match task {
        Task::Help => {
            output::data(cli::HELP);
            Ok(())
        }
        Task::Test { nextest } => test::run(&Workspace::locate()?, &nextest),
        Task::Browser { names } => test::browser(&Workspace::locate()?, &names),
        Task::Pictures => test::pictures(&Workspace::locate()?),
        Task::Servers { command } => servers::run(&Workspace::locate()?, &command),
        Task::Check => check::run(&Workspace::locate()?),
        Task::Conformance => conformance::run(&Workspace::locate()?),
        Task::Documents { names } => documents::run(&Workspace::locate()?, &names),
        Task::Demo { args } => demo::run(&Workspace::locate()?, &args),
        Task::Bench { name, args } => bench::run(&Workspace::locate()?, name.as_deref(), &args),
        Task::Package { profile } => package::run(&Workspace::locate()?, profile),
        Task::Fuzz { args } => fuzz::run(&Workspace::locate()?, &args),
        Task::Torture { name, args } => torture::run(&Workspace::locate()?, name.as_deref(), &args),
    }
}
