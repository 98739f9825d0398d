//! The schema that holds the workflow tables: `kodus_workflow`, or another one by `DB_SCHEMA`.
//!
//! SQL in this workspace is written with the default name, so that it can be read and run as it
//! stands; [`Schema::apply`] puts the configured name in its place. The name is checked once,
//! here, so nothing that reaches SQL can carry a quote.

use std::borrow::Cow;
use std::fmt;

use crate::{Error, Result};

const DEFAULT: &str = "kodus_workflow";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema(Cow<'static, str>);

impl Default for Schema {
    fn default() -> Self {
        Self(Cow::Borrowed(DEFAULT))
    }
}

impl Schema {
    pub fn parse(name: &str) -> Result<Self> {
        let mut chars = name.chars();
        let starts_well = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
        let goes_on_well = chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !starts_well || !goes_on_well || name.len() > 63 || name.starts_with("pg_") {
            return Err(Error::Config(format!(
                "the schema name {name:?} is not one: use a lower-case letter or underscore, then \
                 letters, digits and underscores, 63 at most, not beginning with pg_ (DB_SCHEMA)"
            )));
        }
        Ok(Self(Cow::Owned(name.to_owned())))
    }

    pub fn name(&self) -> &str {
        &self.0
    }

    /// The statement with this schema in the place of the default one.
    pub fn apply<'sql>(&self, sql: &'sql str) -> Cow<'sql, str> {
        if self.0 == DEFAULT {
            Cow::Borrowed(sql)
        } else {
            Cow::Owned(sql.replace(DEFAULT, &self.0))
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_schema_leaves_sql_alone() {
        let sql = "SELECT 1 FROM kodus_workflow.tasks";
        assert_eq!(Schema::default().apply(sql), sql);
    }

    #[test]
    fn another_schema_takes_its_place() {
        let schema = Schema::parse("mine").unwrap();
        assert_eq!(schema.apply("FROM kodus_workflow.tasks"), "FROM mine.tasks");
    }

    #[test]
    fn a_name_that_could_break_out_of_sql_is_refused() {
        for bad in ["", "a\"b", "a;b", "a b", "1a", "Mixed", "pg_mine", "é", &"x".repeat(64)] {
            assert!(Schema::parse(bad).is_err(), "{bad:?} was taken");
        }
    }
}
