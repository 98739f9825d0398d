//! The command line. Parsed by hand: a dozen verbs do not pay for a parser that every cold build compiles first.

use anyhow::{Result, bail};

use crate::package::Profile;

pub(crate) const HELP: &str = "\
cargo xtask COMMAND

  test [nextest arguments…]   get what is missing, start private servers, run every test
                              (`test -p lavra-db`, `test a_page_past_the_end`: only those)
  browser [names…]            only the tests in a real browser (`browser life`: those of that file)
  pictures                    take the pictures of the documents anew
  servers [-- command…]       start the private servers; run the command with them, or print
                              `export LAVRA_TEST_…` lines and stay until stdin closes or Ctrl-C
  check                       format, clippy, documentation, its links, unused dependencies, licences and bans
  conformance                 the HTTP API against its own description, by schemathesis
  documents [names…]          the links of the documents, and their commands (`documents writer`: of that one)
  demo [arguments…]           build lavra and run `lavra demo` (`demo --exit`, `demo --database postgres://…`)
  package [--debug]           a Debian package, installed into a scratch root and tried there
  bench [NAME [-- arguments…]]
                              measure beside other systems, one table; without a name: the list
  fuzz [--seconds N]          bytes that nobody would write, for ten minutes or as told
  torture [NAME [-- arguments…]]
                              kill processes for real; without a name: the list

Environment:
  LAVRA_TEST_POSTGRES, LAVRA_TEST_AMQP
                              servers to use instead of private ones (postgres://…, amqp://…)
  CARGO_TARGET_DIR            where cargo builds
  XDG_CACHE_HOME              what was downloaded or built once is kept in its lavra/ (default: ~/.cache)";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Test { nextest: Vec<String> },
    Browser { names: Vec<String> },
    Pictures,
    Servers { command: Vec<String> },
    Check,
    Conformance,
    Documents { names: Vec<String> },
    Demo { args: Vec<String> },
    Package { profile: Profile },
    Bench { name: Option<String>, args: Vec<String> },
    Fuzz { args: Vec<String> },
    Torture { name: Option<String>, args: Vec<String> },
}

pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Task> {
    let mut args = args.peekable();
    let Some(verb) = args.next() else {
        return Ok(Task::Help);
    };
    let task = match verb.as_str() {
        "help" | "-h" | "--help" => return Ok(Task::Help),
        "test" => {
            return Ok(Task::Test { nextest: args.collect() });
        }
        "browser" => {
            return Ok(Task::Browser { names: args.collect() });
        }
        "documents" => {
            return Ok(Task::Documents { names: args.collect() });
        }
        "fuzz" => {
            return Ok(Task::Fuzz { args: args.collect() });
        }
        "servers" => Task::Servers { command: after_dashes(&mut args)? },
        "pictures" => Task::Pictures,
        "check" => Task::Check,
        "conformance" => Task::Conformance,
        "demo" => {
            // All of it is for the demonstration; two dashes before it do no harm.
            let _dashes = args.next_if(|word| word == "--");
            return Ok(Task::Demo { args: args.collect() });
        }
        "package" => {
            let is_debug = args.next_if(|word| word == "--debug").is_some();
            Task::Package { profile: if is_debug { Profile::Debug } else { Profile::Release } }
        }
        "bench" => Task::Bench { name: name(&mut args), args: after_dashes(&mut args)? },
        "torture" => Task::Torture { name: name(&mut args), args: after_dashes(&mut args)? },
        other => bail!("unknown command `{other}`"),
    };
    match args.next() {
        None => Ok(task),
        Some(extra) => bail!("`{verb}` does not take `{extra}`"),
    }
}

fn name(args: &mut std::iter::Peekable<impl Iterator<Item = String>>) -> Option<String> {
    args.next_if(|word| !word.starts_with('-'))
}

fn after_dashes(
    args: &mut std::iter::Peekable<impl Iterator<Item = String>>,
) -> Result<Vec<String>> {
    match args.next().as_deref() {
        None => Ok(Vec::new()),
        Some("--") => Ok(args.collect()),
        Some(other) => bail!("unexpected `{other}`: put what is to be passed on after `--`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn no_arguments_ask_for_help() {
        assert_eq!(parsed("").unwrap(), Task::Help);
    }

    #[test]
    fn test_passes_everything_on_to_nextest() {
        let nextest = vec!["-p".to_owned(), "lavra-db".to_owned(), "--no-capture".to_owned()];
        assert_eq!(parsed("test -p lavra-db --no-capture").unwrap(), Task::Test { nextest });
    }

    #[test]
    fn a_command_stands_after_two_dashes() {
        assert_eq!(
            parsed("servers -- psql").unwrap(),
            Task::Servers { command: vec!["psql".to_owned()] }
        );
        assert!(parsed("servers psql").is_err());
    }

    #[test]
    fn a_package_is_a_release_unless_it_is_said() {
        let package = |profile| Task::Package { profile };
        assert_eq!(parsed("package").unwrap(), package(Profile::Release));
        assert_eq!(parsed("package --debug").unwrap(), package(Profile::Debug));
    }

    #[test]
    fn a_demonstration_takes_its_arguments_with_dashes_or_without() {
        let args = vec!["--exit".to_owned()];
        assert_eq!(parsed("demo --exit").unwrap(), Task::Demo { args: args.clone() });
        assert_eq!(parsed("demo -- --exit").unwrap(), Task::Demo { args });
    }

    #[test]
    fn what_a_command_does_not_take_is_an_error() {
        assert!(parsed("check everything").is_err());
        assert!(parsed("bench tasks twice").is_err());
        assert!(parsed("tset").is_err());
        assert!(parsed("package --fast").is_err());
    }
}
