//! The documentation, held against the code in both directions: codes, exit codes, settings and
//! variables. The code is walked, not searched, so that what is new is missed. The tables of settings are
//! made of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use clap::CommandFactory;
use lavra_db::Environment;

use crate::cli::Cli;
use crate::client::Refused;
use crate::exit::{BadUsage, BrokerUnreachable, CannotListen, Exit, OwnCode, ServerUnreachable};
use crate::settings;
use crate::variables::Variable;

const CONFIGURATION: &str = include_str!("../../../docs/configuration.md");
const ERRORS: &str = include_str!("../../../docs/errors.md");
const FLEET_ERRORS: &str = include_str!("../../../docs/fleet-errors.md");

/// The rows of the table whose head begins so, as cells.
fn table<'a>(text: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let lines = text.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn all_exits() -> impl Iterator<Item = Exit> {
    successors(Some(Exit::Done), |exit| match exit {
        Exit::Done => Some(Exit::Failed(anyhow::anyhow!("a reason"))),
        Exit::Failed(_) => Some(Exit::BadUsage(anyhow::anyhow!("a reason"))),
        Exit::BadUsage(_) => Some(Exit::WorkRemains("some".into())),
        Exit::WorkRemains(_) => Some(Exit::Interrupted),
        Exit::Interrupted => None,
    })
}

fn all_own_codes() -> impl Iterator<Item = OwnCode> {
    successors(Some(OwnCode::BadUsage), |code| match code {
        OwnCode::BadUsage => Some(OwnCode::CannotListen),
        OwnCode::CannotListen => Some(OwnCode::ServerUnreachable),
        OwnCode::ServerUnreachable => Some(OwnCode::BrokerUnreachable),
        OwnCode::BrokerUnreachable => Some(OwnCode::Error),
        OwnCode::Error => None,
    })
}

fn all_variables() -> impl Iterator<Item = Variable> {
    successors(Some(Variable::Log), |variable| match variable {
        Variable::Log => Some(Variable::SecretKey),
        Variable::SecretKey => Some(Variable::ApiKey),
        Variable::ApiKey => Some(Variable::FleetApiKey),
        Variable::FleetApiKey => Some(Variable::FleetPassword),
        Variable::FleetPassword => Some(Variable::WriterApiKey),
        Variable::WriterApiKey => Some(Variable::WorkerApiKey),
        Variable::WorkerApiKey => None,
    })
}

/// The variables that are asked for when only the host is known, by its older name.
fn of_the_database() -> BTreeSet<String> {
    let asked = RefCell::new(BTreeSet::new());
    let environment = Environment(|name: &str| {
        asked.borrow_mut().insert(name.to_owned());
        (name == "API_PG_DB_HOST").then(|| "localhost".to_owned())
    });
    environment.target().unwrap();
    environment.schema().unwrap();
    asked.into_inner()
}

/// Flags that a variable can stand for, of all commands.
fn flags(command: &clap::Command) -> BTreeSet<(String, String)> {
    let own = command.get_arguments().filter_map(|argument| {
        let variable = argument.get_env()?.to_str()?.to_owned();
        Some((format!("--{}", argument.get_long()?), variable))
    });
    own.chain(command.get_subcommands().flat_map(flags)).collect()
}

#[test]
fn every_code_is_documented_with_its_exit_code() {
    let exit = |error: anyhow::Error| Exit::from(error).code().to_string();
    let mut codes: BTreeMap<String, String> = lavra_web::Code::ALL
        .iter()
        .map(|code| code.as_str().to_owned())
        .map(|code| (code.clone(), exit(Refused { code, detail: String::new() }.into())))
        .collect();
    codes.extend(all_own_codes().map(|code| {
        let error = match code {
            OwnCode::BadUsage => BadUsage("a reason".into()).into(),
            OwnCode::CannotListen => {
                let source = std::io::ErrorKind::AddrInUse.into();
                CannotListen { flag: "--listen", place: "a place".into(), source }.into()
            }
            OwnCode::ServerUnreachable => {
                ServerUnreachable { base: "a place".into(), source: "a reason".into() }.into()
            }
            OwnCode::BrokerUnreachable => {
                let (place, reason) = ("a place".into(), "a reason".into());
                BrokerUnreachable { place, reason }.into()
            }
            OwnCode::Error => anyhow::anyhow!("a reason"),
        };
        assert_eq!(crate::exit::code(&error), code.as_str());
        (code.as_str().to_owned(), exit(error))
    }));
    let rows = table(ERRORS, "| code |");
    let documented: BTreeMap<String, String> =
        rows.iter().map(|row| (row[0].replace('`', ""), row[2].to_owned())).collect();
    assert_eq!(documented.len(), rows.len(), "a code stands twice");
    assert_eq!(documented, codes);
}

#[test]
fn every_exit_code_is_documented() {
    let codes: Vec<String> = all_exits().map(|exit| exit.code().to_string()).collect();
    let documented = table(CONFIGURATION, "| code |");
    assert_eq!(documented.iter().map(|row| row[0]).collect::<Vec<_>>(), codes);
}

#[test]
fn every_setting_is_documented() {
    let of_all = table(CONFIGURATION, "| flag |").into_iter().map(|row| row[2]);
    let of_parts = OF_COMMENTS.iter().flat_map(|(head, _)| table(CONFIGURATION, head));
    let all = of_all.chain(of_parts.map(|row| row[0]));
    let documented: Vec<&str> = all.flat_map(quoted).collect();
    let unique: BTreeSet<String> = documented.iter().map(|&key| key.to_owned()).collect();
    assert_eq!(documented.len(), unique.len(), "a setting stands twice");
    assert_eq!(unique, settings::keys());
}

/// The tables whose rows are made of the comments on settings, and the beginnings of their keys.
const OF_COMMENTS: [(&str, &[&str]); 5] = [
    ("| `lavra.toml`, web |", &["web."]),
    ("| `lavra.toml` |", &["runner.", "tasks.", "retention."]),
    ("| `lavra.toml`, fleet |", &["fleet."]),
    ("| `lavra.toml`, writer |", &["writer."]),
    ("| `lavra.toml`, worker |", &["worker."]),
];

type Structs = BTreeMap<String, syn::ItemStruct>;

/// A row for every setting that has a comment, in the order of the code.
fn explained() -> Vec<(String, String)> {
    let code =
        [include_str!("settings/file.rs"), include_str!("../../tasks/src/builtin/cleanup.rs")];
    let items = code.iter().flat_map(|code| syn::parse_file(code).unwrap().items);
    let structs: Structs = items
        .filter_map(|item| match item {
            syn::Item::Struct(item) => Some((item.ident.to_string(), item)),
            _ => None,
        })
        .collect();
    let mut rows = Vec::new();
    explain(&structs["File"], "", &structs, &mut rows);
    rows
}

fn explain(of: &syn::ItemStruct, prefix: &str, all: &Structs, rows: &mut Vec<(String, String)>) {
    for field in &of.fields {
        let key = format!("{prefix}{}", field.ident.as_ref().unwrap());
        let (kind, is_map) = kind(&field.ty);
        if let Some(part) = all.get(&kind) {
            let name = if is_map { ".NAME" } else { "" };
            explain(part, &format!("{key}{name}."), all, rows);
        } else if let Some(text) = comment(&field.attrs) {
            let (meaning, default) = text.rsplit_once(" [default: ").unwrap();
            let default = default.strip_suffix(']').unwrap();
            let (first, rest) = meaning.split_at(1);
            let meaning = format!("{}{rest}", first.to_lowercase());
            rows.push((key.clone(), format!("| `{key}` | {default} | {meaning} |\n")));
        }
    }
}

/// The name of a type, or of what a map has, and whether it is one.
fn kind(of: &syn::Type) -> (String, bool) {
    let syn::Type::Path(path) = of else { panic!("a setting of an unknown kind") };
    let last = path.path.segments.last().unwrap();
    match &last.arguments {
        syn::PathArguments::AngleBracketed(inner) if last.ident == "BTreeMap" => {
            let Some(syn::GenericArgument::Type(inner)) = inner.args.last() else {
                panic!("a map of an unknown kind")
            };
            (kind(inner).0, true)
        }
        _ => (last.ident.to_string(), false),
    }
}

fn comment(attributes: &[syn::Attribute]) -> Option<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

#[test]
fn the_tables_of_settings_are_made_of_the_code() {
    let rows = explained();
    let mut made = CONFIGURATION.to_owned();
    for (head, prefixes) in OF_COMMENTS {
        let is_here = |key: &str| prefixes.iter().any(|prefix| key.starts_with(prefix));
        let ours: String =
            rows.iter().filter(|(key, _)| is_here(key)).map(|(_, row)| row.as_str()).collect();
        let start = made.find(&format!("\n{head}")).unwrap() + 1;
        // After the head, and the line below it.
        let line = |at: usize| at + made[at..].find('\n').unwrap() + 1;
        let first = line(line(start));
        let end = first + made[first..].find("\n\n").unwrap() + 1;
        made.replace_range(first..end, &ours);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        std::fs::write(file, &made).unwrap();
    } else {
        assert_eq!(CONFIGURATION, made, "UPDATE_DOCS=1 writes what the code says");
    }
}

/// The settings whose documented default is a number, or words of code.
fn defaults() -> Vec<(String, toml::Value)> {
    let of_all = table(CONFIGURATION, "| flag |").into_iter().map(|row| (row[2], row[3]));
    let of_parts = OF_COMMENTS.iter().flat_map(|(head, _)| table(CONFIGURATION, head));
    let rows = of_all.chain(of_parts.map(|row| (row[0], row[1])));
    let value = |text: &str| match text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        Some(word) => Some(toml::Value::from(word)),
        None => text.parse::<i64>().ok().map(toml::Value::from),
    };
    rows.filter_map(|(key, text)| Some((quoted(key).next()?.to_owned(), value(text)?))).collect()
}

fn file(key: &str, value: &toml::Value) -> String {
    format!("{key} = {value}")
}

#[test]
fn every_documented_default_is_the_default() {
    let usual = settings::effect("");
    let defaults = defaults();
    for (key, value) in &defaults {
        assert_eq!(settings::effect(&file(key, value)), usual, "{key} is not {value} by default");
        let other = match value {
            toml::Value::Integer(number) => toml::Value::from(number * 2 + 1),
            _ => toml::Value::from("another"),
        };
        assert_ne!(settings::effect(&file(key, &other)), usual, "{key} changes nothing");
    }
    assert!(defaults.len() > 50, "only {} defaults were found", defaults.len());
}

#[test]
fn every_variable_is_documented_with_its_flag() {
    let with_flags = flags(&Cli::command());
    let rows = table(CONFIGURATION, "| flag |");
    let documented: BTreeSet<(String, String)> = rows
        .iter()
        .filter_map(|row| Some((quoted(row[0]).next()?.into(), quoted(row[1]).next()?.into())))
        .collect();
    assert_eq!(documented, with_flags);

    let mut variables = of_the_database();
    variables.extend(all_variables().map(|variable| variable.name().to_owned()));
    variables.extend(with_flags.into_iter().map(|(_, variable)| variable));
    let is_ours = |name: &&str| {
        ["LAVRA_", "DB_", "API_PG_DB_"].iter().any(|prefix| name.starts_with(prefix))
            && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
    };
    let documented: BTreeSet<String> =
        CONFIGURATION.lines().flat_map(quoted).filter(is_ours).map(str::to_owned).collect();
    assert_eq!(documented, variables);
}

/// `--only (serve, runner)` stands for that flag of each of these; without a command, for one of all.
#[test]
fn every_documented_flag_is_one_of_its_commands() {
    let all = Cli::command();
    for row in table(CONFIGURATION, "| flag |") {
        let Some(flag) = quoted(row[0]).next() else { continue };
        let commands = row[0].split_once('(').map_or("", |(_, rest)| rest.trim_end_matches(')'));
        for name in commands.split(", ") {
            let command = name.split_whitespace().fold(&all, |command, word| {
                command.find_subcommand(word).unwrap_or_else(|| panic!("no command {name}"))
            });
            let longs = command.get_arguments().filter_map(clap::Arg::get_long);
            assert!(longs.map(|long| format!("--{long}")).any(|it| it == flag), "{name} {flag}");
        }
    }
}

#[test]
fn every_code_of_a_mission_has_its_page() {
    let titles: Vec<&str> =
        FLEET_ERRORS.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(titles, lavra_fleet::code::ErrorCode::WORDS);
    for part in ["**Who is to blame**", "**What Lavra does**", "**What you do**"] {
        assert_eq!(FLEET_ERRORS.matches(part).count(), titles.len(), "{part}");
    }
}
