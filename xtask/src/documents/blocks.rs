//! The blocks of a document that are to be run, by session.

use anyhow::{Result, bail, ensure};

/// Commands and files that share a directory and a shell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    name: String,
    /// Whether its commands need what a team has: PostgreSQL, PgBouncer, RabbitMQ.
    pub(super) on_servers: bool,
    pub(super) steps: Vec<Step>,
}

impl Session {
    /// For people: nothing, where a document has only one.
    pub(super) fn title(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(" ({})", self.name) }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    File { name: String, text: String },
    Command(Command),
}

/// What is typed, and what a person sees then.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Of the document.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) shows: Vec<String>,
    pub(super) code: i32,
    pub(super) stays: bool,
}

/// What a comment says of the block below it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    Run { stays: bool, on_servers: bool, session: String },
    File { name: String, session: String },
}

fn mark(line: &str) -> Option<Mark> {
    let said = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let (what, session) = said.split_once(':').unwrap_or((said, ""));
    let (what, session) = (what.trim(), session.trim().to_owned());
    match what {
        "runnable" => Some(Mark::Run { stays: false, on_servers: false, session }),
        "runnable in the background" => Some(Mark::Run { stays: true, on_servers: false, session }),
        "runnable on servers" => Some(Mark::Run { stays: false, on_servers: true, session }),
        _ => {
            let name = what.strip_prefix("file ")?.trim().to_owned();
            Some(Mark::File { name, session })
        }
    }
}

/// A block that a mark stands before: the line it begins on, and its lines.
fn marked(text: &str) -> Result<Vec<(Mark, usize, Vec<&str>)>> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    let mut pending: Option<(Mark, usize)> = None;
    while let Some((number, line)) = lines.next() {
        let Some(fence) = line.trim().strip_prefix("```") else {
            if let Some(mark) = mark(line) {
                pending = Some((mark, number + 1));
            } else if let (Some((_, at)), false) = (&pending, line.trim().is_empty()) {
                bail!("line {at}: no block follows this comment");
            }
            continue;
        };
        let mut inside = Vec::new();
        for (_, line) in lines.by_ref() {
            if line.trim() == "```" {
                break;
            }
            inside.push(line);
        }
        if let Some((mark, _)) = pending.take() {
            let is_commands = matches!(mark, Mark::Run { .. });
            ensure!(
                !is_commands || fence == "console",
                "line {}: only a console block can be run",
                number + 1
            );
            found.push((mark, number + 2, inside));
        }
    }
    match pending {
        Some((_, at)) => bail!("line {at}: no block follows this comment"),
        None => Ok(found),
    }
}

pub(super) fn sessions(text: &str) -> Result<Vec<Session>> {
    let mut sessions: Vec<Session> = Vec::new();
    for (mark, line, inside) in marked(text)? {
        let (Mark::Run { session: name, .. } | Mark::File { session: name, .. }) = &mark;
        let place = match sessions.iter().position(|session| session.name == *name) {
            Some(place) => place,
            None => {
                sessions.push(Session { name: name.clone(), ..Session::default() });
                sessions.len() - 1
            }
        };
        let session = &mut sessions[place];
        match mark {
            Mark::File { name, .. } => {
                let text = format!("{}\n", inside.join("\n"));
                session.steps.push(Step::File { name, text });
            }
            Mark::Run { stays, on_servers, .. } => {
                session.on_servers |= on_servers;
                let commands = commands(line, &inside, stays)?;
                session.steps.extend(commands.into_iter().map(Step::Command));
            }
        }
    }
    Ok(sessions)
}

/// A command goes on where a line ends with `\` or within quotes.
fn commands(first: usize, lines: &[&str], stays: bool) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let line_number = first + number;
        if let Some(typed) = line.strip_prefix("$ ") {
            let text = without_remark(typed).to_owned();
            let stays = stays || text.ends_with('&');
            commands.push(Command { line: line_number, text, shows: Vec::new(), code: 0, stays });
            continue;
        }
        let Some(last) = commands.last_mut() else {
            bail!("line {line_number}: a block that is run begins with `$ `");
        };
        if last.shows.is_empty() && goes_on(&last.text) {
            last.text.push('\n');
            last.text.push_str(line);
        } else {
            last.shows.push((*line).to_owned());
        }
    }
    with_codes(commands)
}

/// `$ echo $?` is not run: it says how the command before it ends.
fn with_codes(commands: Vec<Command>) -> Result<Vec<Command>> {
    let mut kept: Vec<Command> = Vec::new();
    for command in commands {
        if command.text.trim() != "echo $?" {
            kept.push(command);
            continue;
        }
        let code = command.shows.first().and_then(|line| line.trim().parse().ok());
        match (kept.last_mut(), code) {
            (Some(before), Some(code)) => before.code = code,
            _ => bail!("line {}: `echo $?` shows no code of a command before it", command.line),
        }
    }
    Ok(kept)
}

/// Without `# what a reader should know` at its end.
fn without_remark(text: &str) -> &str {
    match text.rsplit_once(" #") {
        Some((typed, _)) if !goes_on(typed) => typed.trim_end(),
        _ => text.trim_end(),
    }
}

fn goes_on(text: &str) -> bool {
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None | Some('"'), '\\') if letters.next().is_none() => return true,
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            _ => {}
        }
    }
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Title

<!-- file shop.toml -->
```toml
name = \"shop\"
```

<!-- runnable -->

```console
$ printf 'a
b' \\
  | cat
a
b
$ false
$ echo $?
1
```

```console
$ not run
```

<!-- runnable in the background: other -->
```console
$ sleep 9
$ sleep '1 # 2' &   # for a while
```
";

    fn command(line: usize, text: &str, shows: &[&str], code: i32) -> Step {
        let shows = shows.iter().map(|&line| line.to_owned()).collect();
        Step::Command(Command { line, text: text.to_owned(), shows, code, stays: false })
    }

    #[test]
    fn marked_blocks_are_found_and_others_are_not() {
        let sessions = sessions(TEXT).unwrap();
        assert_eq!(sessions.len(), 2);
        let file = Step::File { name: "shop.toml".into(), text: "name = \"shop\"\n".into() };
        let typed = command(11, "printf 'a\nb' \\\n  | cat", &["a", "b"], 0);
        assert_eq!(sessions[0].steps, [file, typed, command(16, "false", &[], 1)]);
        assert_eq!(sessions[1].name, "other");
        let Step::Command(sleep) = &sessions[1].steps[0] else { panic!("a command") };
        assert!(sleep.stays);
        let Step::Command(sleep) = &sessions[1].steps[1] else { panic!("a command") };
        assert_eq!(sleep.text, "sleep '1 # 2' &");
    }

    #[test]
    fn one_block_on_servers_is_enough_for_its_session() {
        let block = |mark: &str| format!("<!-- {mark} -->\n```console\n$ ls\n```\n");
        let marks =
            ["runnable", "runnable on servers: team", "runnable: team", "runnable on servers"];
        let sessions = sessions(&marks.map(block).concat()).unwrap();
        assert_eq!(sessions.len(), 2);
        assert!(sessions.iter().all(|session| session.on_servers && session.steps.len() == 2));
        assert!(!super::sessions(&block("runnable")).unwrap()[0].on_servers);
    }

    #[test]
    fn a_mark_without_its_block_is_a_mistake() {
        for text in [
            "<!-- runnable -->\ntext\n",
            "<!-- runnable -->\n",
            "<!-- runnable -->\n```sh\nls\n```\n",
            "<!-- runnable -->\n```console\nls\n```\n",
            "<!-- runnable -->\n```console\n$ echo $?\n0\n```\n",
        ] {
            assert!(sessions(text).is_err(), "{text}");
        }
    }

    #[test]
    fn comments_that_say_something_else_are_left_alone() {
        assert_eq!(sessions("<!-- a remark -->\n```console\n$ ls\n```\n").unwrap(), []);
    }
}
