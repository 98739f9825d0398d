#![doc = include_str!("../README.md")]

mod cli;
mod client;
mod commands;
mod count;
mod exit;
mod logging;
mod migrations;
mod node;
mod printer;
mod settings;
mod simulate;
mod variables;
mod work;

#[cfg(test)]
mod documented;
#[cfg(test)]
mod helped;

use clap::Parser;

use cli::{Cli, Command};
use exit::Exit;
use logging::Manner;
use printer::Printer;

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    let manner = match cli.command {
        Command::Serve(_) | Command::Runner(_) | Command::Writer(_) | Command::Worker(_) => {
            Manner::Tells
        }
        Command::Demo(_) => Manner::Shows,
        _ => Manner::Warns,
    };
    let printer = Printer::new(cli.json);
    if let Err(error) = logging::start(cli.verbose, cli.log_format, manner) {
        return Exit::from(anyhow::Error::from(error)).report(&printer);
    }
    // One provider for every TLS connection of the process.
    let _only_the_first_counts = rustls::crypto::ring::default_provider().install_default();
    // It has runtimes of its own, whose time is not ours.
    if let Command::Simulate(args) = &cli.command {
        return commands::simulate::run(args, &printer).unwrap_or_else(Exit::from).report(&printer);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::from(anyhow::Error::from(error)).report(&printer),
    };
    let outcome = runtime.block_on(run(cli, &printer));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome.unwrap_or_else(Exit::from).report(&printer)
}

async fn run(cli: Cli, printer: &Printer) -> anyhow::Result<Exit> {
    if cli.options.server.is_some() && opens_a_database(&cli.command) {
        let text = "--server (or LAVRA_SERVER): this command has a database open itself and asks no server";
        return Err(exit::BadUsage(text.into()).into());
    }
    // Asked for by those who have any: a file of settings that is wrong is nothing to the others.
    let settings = || settings::Settings::load(&cli.options);
    match cli.command {
        Command::Serve(args) => commands::serve::serve(settings()?, &args).await,
        Command::Runner(args) => commands::serve::runner(&settings()?, &args).await,
        Command::Worker(args) => commands::worker::run(&settings()?, &args, printer).await,
        Command::Extract(command) => {
            Box::pin(commands::extract::run(&settings()?, command, printer)).await
        }
        Command::Mission(command) => commands::mission::run(&settings()?, command, printer).await,
        Command::Fleet(command) => commands::fleet::run(&settings()?, command, printer).await,
        Command::Task(command) => commands::task::run(&settings()?, command, printer).await,
        Command::DeadLetter(command) => {
            commands::dead_letter::run(&settings()?, command, printer).await
        }
        Command::Schedule(command) => commands::schedule::run(&settings()?, command, printer).await,
        Command::Webhook(command) => commands::webhook::run(&settings()?, command, printer).await,
        Command::Secret(command) => commands::secret::run(&settings()?, command, printer).await,
        Command::Key(command) => commands::key::run(&settings()?, command, printer).await,
        Command::Migrate(args) => commands::migrate::run(&settings()?, &args, printer).await,
        Command::Sql(args) => commands::sql::run(&settings()?, &args, printer).await,
        Command::Doctor => commands::doctor::run(&settings()?, printer).await,
        Command::Demo(args) => commands::demo::run(&cli.options, &args, printer).await,
        Command::Simulate(_) => Ok(Exit::Done),
        Command::Writer(args) => commands::writer::run(settings()?, &args).await,
        Command::World(args) => commands::world::run(&args, printer).await,
        Command::Man { directory } => commands::man::run(&directory),
        Command::Completions { shell } => {
            commands::completions(shell, printer);
            Ok(Exit::Done)
        }
    }
}

/// Whether a command opens the database itself, whatever servers there are.
fn opens_a_database(command: &Command) -> bool {
    match command {
        Command::Serve(_)
        | Command::Runner(_)
        | Command::Writer(_)
        | Command::Doctor
        | Command::Demo(_) => true,
        Command::Secret(command) => !matches!(command, cli::Secret::GenerateKey),
        Command::Migrate(args) => !args.print,
        Command::Worker(_)
        | Command::Extract(_)
        | Command::Mission(_)
        | Command::Fleet(_)
        | Command::Task(_)
        | Command::DeadLetter(_)
        | Command::Schedule(_)
        | Command::Webhook(_)
        | Command::Key(_)
        | Command::Sql(_)
        | Command::Simulate(_)
        | Command::World(_)
        | Command::Man { .. }
        | Command::Completions { .. } => false,
    }
}
