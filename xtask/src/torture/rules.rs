//! Rules about tables: questions that must be answered with nothing.

use crate::servers::Postgres;

/// What must not be there, and the statement that counts it.
pub(super) type Rule = (&'static str, &'static str);

/// What breaks the rules; one that cannot be asked is not kept either.
pub(super) fn broken(rules: &[Rule], postgres: &Postgres, database: &str) -> Vec<String> {
    let broken = |(what, sql): &Rule| match postgres.sql(database, sql) {
        Ok(count) if count == "0" => None,
        Ok(count) => Some(format!("{count} {what}")),
        Err(error) => Some(format!("{what}: {error:#}")),
    };
    rules.iter().filter_map(broken).collect()
}

/// Whether a rule is about a table: it names it as a whole, not the start of another's name.
pub(super) fn look_at(rules: &[Rule], table: &str) -> bool {
    let is_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    rules.iter().any(|(_, sql)| sql.split(|letter| !is_of_a_name(letter)).any(|it| it == table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_looked_at_where_a_rule_names_all_of_it() {
        let rules: &[Rule] = &[
            ("pages", "SELECT count(*) FROM psa.pncp_pages p, public.missions"),
            ("keys", "SELECT (SELECT count(*) FROM lavra.api_keys)"),
        ];
        for table in ["psa.pncp_pages", "public.missions", "lavra.api_keys"] {
            assert!(look_at(rules, table), "{table}");
        }
        for table in ["psa.pncp_page", "psa.pncp", "public.mission", "missions", "lavra.api"] {
            assert!(!look_at(rules, table), "{table}");
        }
    }
}
