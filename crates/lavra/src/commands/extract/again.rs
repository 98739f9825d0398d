//! The command that goes on where one has ended: as it was typed, but for addresses that hold a secret, and
//! without `--refresh`, which would begin anew. What it was to refresh is not complete any more.

/// Flags whose value may be an address with a password.
const ADDRESSES: [&str; 3] = ["--database", "--broker", "--server"];

/// The same command.
pub(super) fn same() -> String {
    line(&typed(), None)
}

/// The same with `extract retry`, which also takes up what has failed.
pub(super) fn retry() -> String {
    line(&typed(), Some("retry"))
}

/// ` --database FILE`, where that was typed.
pub(super) fn database() -> String {
    let typed = typed();
    let flag =
        typed.iter().position(|word| word == "--database" || word.starts_with("--database="));
    flag.map_or(String::new(), |at| {
        let end = (at + 1 + usize::from(typed[at] == "--database")).min(typed.len());
        line(&typed[at..end], None).trim_start_matches("lavra").to_owned()
    })
}

fn typed() -> Vec<String> {
    std::env::args().skip(1).collect()
}

fn line(words: &[String], verb: Option<&str>) -> String {
    let mut line = String::from("lavra");
    let (mut before, mut verb) = ("", verb);
    for word in words {
        let said = match word.as_str() {
            "run" | "retry" if before == "extract" => verb.take().unwrap_or(word),
            "--refresh" => continue,
            word if has_secret(before, word) => "\u{2026}",
            word => word,
        };
        line.push(' ');
        line.push_str(&quoted(said));
        before = word;
    }
    line
}

fn has_secret(before: &str, word: &str) -> bool {
    let is_of = |flag: &str| before == flag || word.starts_with(&format!("{flag}="));
    word.contains('@') && ADDRESSES.into_iter().any(is_of)
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,%+@\u{2026}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_was_typed_is_said_again() {
        let typed =
            words("--database a.duckdb extract run --source run.toml --from 2024-01 --to 2024-02");
        assert_eq!(line(&typed, None), format!("lavra {}", typed.join(" ")));
        let spaced =
            ["extract".to_owned(), "run".into(), "--source".into(), "my file's.toml".into()];
        assert_eq!(line(&spaced, None), "lavra extract run --source 'my file'\\''s.toml'");
    }

    #[test]
    fn what_failed_is_taken_up_by_retry_and_nothing_is_refreshed_twice() {
        let typed = words("extract run pncp --from 2024-01 --to 2024-02 --refresh --endpoint run");
        let said = "lavra extract retry pncp --from 2024-01 --to 2024-02 --endpoint run";
        assert_eq!(line(&typed, Some("retry")), said);
        assert_eq!(line(&typed, None), said.replace("retry", "run"));
    }

    #[test]
    fn an_address_with_a_password_is_not_said() {
        for typed in [
            "--database postgres://ana:secret@db/lavra sql",
            "--database=postgres://ana:secret@db/x sql",
        ] {
            let said = line(&words(typed), None);
            assert!(!said.contains("secret") && said.ends_with(" sql"), "{said}");
        }
        let said = line(&words("--base-url http://127.0.0.1:8090/api extract run"), None);
        assert_eq!(said, "lavra --base-url http://127.0.0.1:8090/api extract run");
    }
}
