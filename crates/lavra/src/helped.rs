//! What `--help` says, of every command, at the width of a usual terminal. A page for each command of the
//! first level, with all that is below it.

use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;

/// What is shown for `lavra WORDS --help`.
fn said(lavra: &Command, words: &[&str]) -> String {
    let typed = ["lavra"].iter().chain(words).chain(&["--help"]);
    let help = lavra.clone().term_width(100).try_get_matches_from(typed).unwrap_err();
    assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp, "{words:?}");
    format!("$ lavra {} --help\n{help}", words.join(" "))
}

/// With all that is below it.
fn page(lavra: &Command, command: &Command, words: &[&str]) -> String {
    let mut text = said(lavra, words);
    for below in shown(command) {
        text.push('\n');
        text.push_str(&page(lavra, below, &[words, &[below.get_name()]].concat()));
    }
    text
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn built() -> Command {
    let mut lavra = Cli::command();
    lavra.build();
    lavra
}

#[test]
fn the_help_of_every_command_reads_as_it_did() {
    insta::assert_snapshot!("lavra", said(&Cli::command(), &[]));
    // The options of every command stand there; once is enough.
    let hidden = Cli::command().mut_args(|argument| {
        let is_global = argument.is_global_set();
        argument.hide(is_global)
    });
    for command in shown(&hidden) {
        let name = command.get_name();
        insta::assert_snapshot!(name, page(&hidden, command, &[name]));
    }
}

#[test]
fn every_command_and_everything_it_takes_is_explained() {
    fn look(command: &Command, silent: &mut Vec<String>) {
        let name = command.get_bin_name().unwrap_or("lavra").to_owned();
        if command.get_about().is_none() {
            silent.push(name.clone());
        }
        let unexplained = |argument: &&Arg| argument.get_help().is_none();
        let arguments = command.get_arguments().filter(unexplained);
        silent.extend(arguments.map(|argument| format!("{name} {}", argument.get_id())));
        command
            .get_subcommands()
            .filter(|command| command.get_name() != "help")
            .for_each(|command| look(command, silent));
    }
    let mut silent = Vec::new();
    look(&built(), &mut silent);
    assert!(silent.is_empty(), "without a word of help: {silent:#?}");
}

#[test]
fn no_value_of_the_environment_is_in_a_help_text() {
    fn look(command: &Command) {
        for argument in command.get_arguments().filter(|argument| argument.get_env().is_some()) {
            assert!(argument.is_hide_env_values_set(), "{}", argument.get_id());
        }
        command.get_subcommands().for_each(look);
    }
    look(&built());
}
