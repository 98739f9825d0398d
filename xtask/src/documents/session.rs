//! A session: its files written, its commands typed, what they say held against what is shown.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::blocks::{Command, Session, Step};
use super::compare::{self, Ids};
use super::shell::Shell;
use super::team::Team;
use crate::python;
use crate::workspace::Workspace;

/// Where they listen if they are not told otherwise.
const USUAL: [(&str, u16); 5] = [
    ("lavra demo", 8080),
    ("lavra serve", 8080),
    ("lavra world", 8090),
    ("lavra writer", 8091),
    ("lavra worker", 8100),
];

/// Where a document says that its reader is.
const HOME: &str = "/home/you";

/// Where it says that the sources are.
const CHECKOUT: &str = "/home/you/src/lavra";

/// How many commands were run. A session on servers has those of `team`, with nothing in them.
pub(super) fn run(workspace: &Workspace, session: &Session, team: Option<&Team>) -> Result<usize> {
    ports_are_free(session)?;
    if let Some(team) = team {
        team.begin_anew()?;
    }
    perform(workspace, session, team)
}

fn perform(workspace: &Workspace, session: &Session, team: Option<&Team>) -> Result<usize> {
    let place = tempfile::tempdir()?;
    let (directory, records) = (place.path().join("work"), place.path().join("records"));
    std::fs::create_dir(&directory)?;
    std::fs::create_dir(&records)?;
    let variables = team.map(Team::variables).unwrap_or_default();
    let python = python::of_the_tests(workspace)?;
    let programs: Vec<&Path> =
        team.map(Team::programs).into_iter().chain(python.parent()).collect();
    let mut shell = Shell::start(workspace, &directory, &records, &programs, &variables)?;
    let mut ids = Ids::default();
    let checkout = workspace.root().display().to_string();
    let mut count = 0;
    for step in &session.steps {
        match step {
            Step::File { name, text } => std::fs::write(directory.join(name), text)
                .with_context(|| format!("cannot write the file {name}"))?,
            Step::Command(command) => {
                let text = command.text.replace(CHECKOUT, &checkout);
                let text = team.map_or(text.clone(), |team| team.addressed(&text));
                typed(&mut shell, command, &text, &mut ids, &directory)
                    .with_context(|| format!("line {}: `{}`", command.line, command.text))?;
                count += 1;
            }
        }
    }
    Ok(count)
}

fn typed(
    shell: &mut Shell,
    command: &Command,
    text: &str,
    ids: &mut Ids,
    directory: &Path,
) -> Result<()> {
    let home = directory.display().to_string();
    let text = ids.apply(text).replace(HOME, &home);
    let ended =
        if command.stays { shell.run_in_the_background(&text)? } else { shell.run(&text)? };
    let said = ended.said.replace(&home, HOME);
    ensure!(
        ended.code == command.code,
        "it ended with {} instead of {}:\n{said}",
        ended.code,
        command.code
    );
    // What a server says comes when it likes.
    if !command.stays {
        let missing = compare::missing(&command.shows, &said);
        ensure!(missing.is_empty(), "it does not say\n{}\nbut\n{said}", missing.join("\n"));
    }
    ids.learn(&command.shows, &said);
    Ok(())
}

/// A reader has these ports; with another program on one of them the commands would talk to that.
fn ports_are_free(session: &Session) -> Result<()> {
    let commands: Vec<&str> = session
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Command(command) => Some(command.text.as_str()),
            Step::File { .. } => None,
        })
        .collect();
    let usual = USUAL.iter().filter(|(name, _)| commands.iter().any(|text| text.contains(name)));
    // `user@127.0.0.1:6432` is a server of the team, which has another port here.
    let texts = commands.iter().map(|text| text.replace("@127.0.0.1:", "@"));
    let named = texts.flat_map(|text| {
        let ports = text.split("127.0.0.1:").skip(1).filter_map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse().ok().filter(|port| *port != 0)
        });
        ports.collect::<Vec<u16>>()
    });
    for port in named.chain(usual.map(|(_, port)| *port)).collect::<BTreeSet<u16>>() {
        ensure!(
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok(),
            "port {port} is taken: stop what listens there, the document's commands need it"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::blocks::sessions;
    use super::*;

    fn performed(console: &str) -> Result<usize> {
        let text = format!("<!-- runnable -->\n```console\n{console}```\n");
        perform(&Workspace::locate().unwrap(), &sessions(&text).unwrap()[0], None)
    }

    #[test]
    fn what_one_command_sets_the_next_one_finds() {
        let count = performed(
            "$ export NAME=lavra\n$ mkdir -p a && cd a\n$ echo $NAME in $PWD\nlavra in /home/you/a\n",
        );
        assert_eq!(count.unwrap(), 3);
    }

    #[test]
    fn a_command_that_ends_or_says_otherwise_is_a_failure() {
        assert!(performed("$ false\n$ echo $?\n1\n").is_ok());
        let told = |console| format!("{:#}", performed(console).unwrap_err());
        assert!(told("$ echo hm; false\n").contains("ended with 1 instead of 0:\nhm"));
        assert!(told("$ true\n$ echo $?\n3\n").contains("ended with 0 instead of 3"));
        let missing = told("$ echo this\nthat\n");
        assert!(missing.contains("line 3: `echo this`") && missing.contains("that"), "{missing}");
    }

    #[test]
    fn a_server_is_waited_for_and_stopped() {
        let port = crate::ports::free().unwrap();
        let serve = format!("python3 -m http.server {port} --bind 127.0.0.1 &");
        let ask = format!(
            "python3 -c 'from urllib.request import urlopen; print(urlopen(\"http://127.0.0.1:{port}\").status)'"
        );
        performed(&format!("$ {serve}\n$ {ask}\n200\n")).unwrap();
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok(), "it is still there");
        assert!(performed("$ true &\n").is_err(), "it did not stay");
    }

    #[test]
    fn the_sources_are_the_checkout() {
        performed("$ head -1 /home/you/src/lavra/README.md\n# Lavra\n").unwrap();
    }

    fn taken(address: &str) -> bool {
        let text = format!("<!-- runnable -->\n```console\n$ curl {address}/x\n```\n");
        ports_are_free(&sessions(&text).unwrap()[0]).is_err()
    }

    #[test]
    fn a_port_that_is_taken_is_told_before_anything_is_run() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(taken(&format!("127.0.0.1:{port}")));
        assert!(!taken(&format!("lavra@127.0.0.1:{port}")), "a server of the team");
    }
}
