//! Which database: `--database`, or the variables of the environment.

use std::fmt;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

use crate::{Error, Result, Schema};

/// A DuckDB file, or a PostgreSQL server by its URL. Its `Display` never shows a password.
#[derive(Clone, Debug)]
pub enum Target {
    File(PathBuf),
    Postgres(SecretString),
}

impl Target {
    pub fn parse(text: &str) -> Result<Self> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            url::Url::parse(text).map_err(|error| {
                Error::Config(format!("the database URL cannot be read: {error}"))
            })?;
            return Ok(Self::Postgres(text.to_owned().into()));
        }
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            let form = "postgres://user:password@host:5432/database";
            return Err(Error::Config(format!("a PostgreSQL URL has the form {form}")));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(Error::Config(format!(
                "a database is a path (DuckDB) or a postgres:// URL, not {scheme}://"
            )));
        }
        if text.is_empty() {
            return Err(Error::Config("the database path is empty".into()));
        }
        Ok(Self::File(PathBuf::from(text)))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Postgres(text) => match url::Url::parse(text.expose_secret()) {
                Ok(url) => {
                    let host = url.host_str().unwrap_or("localhost");
                    write!(f, "postgres://{host}:{}{}", url.port().unwrap_or(5432), url.path())
                }
                Err(_) => f.write_str("postgres://…"),
            },
        }
    }
}

/// The variables that name a database where no `--database` is given: `DB_URL`, or `DB_HOST`,
/// `DB_PORT`, `DB_USER`, `DB_PASSWORD`, `DB_NAME`, `DB_SCHEMA`, each falling back to the
/// `API_PG_DB_*` one of the same meaning.
#[derive(Debug)]
pub struct Environment<F>(pub F);

impl<F: Fn(&str) -> Option<String>> Environment<F> {
    fn first(&self, names: [&str; 2]) -> Option<String> {
        names.iter().find_map(|name| (self.0)(name).filter(|value| !value.is_empty()))
    }

    /// The PostgreSQL server that the environment names, if it names one.
    pub fn target(&self) -> Result<Option<Target>> {
        if let Some(url) = (self.0)("DB_URL").filter(|value| !value.is_empty()) {
            return Target::parse(&url).map(Some);
        }
        let Some(host) = self.first(["DB_HOST", "API_PG_DB_HOST"]) else {
            return Ok(None);
        };
        let port = self.first(["DB_PORT", "API_PG_DB_PORT"]).unwrap_or_else(|| "5432".into());
        let port: u16 = port
            .parse()
            .map_err(|_| Error::Config(format!("DB_PORT is not a port number: {port:?}")))?;
        let user = self.first(["DB_USER", "API_PG_DB_USERNAME"]);
        let password = self.first(["DB_PASSWORD", "API_PG_DB_PASSWORD"]);
        let name = self.first(["DB_NAME", "API_PG_DB_DATABASE"]);
        let bad_host = |_| Error::Config(format!("DB_HOST is not a host name: {host:?}"));
        let mut url = url::Url::parse("postgres://localhost").map_err(Error::thread)?;
        url.set_host(Some(&host)).map_err(bad_host)?;
        let refused = |()| Error::Config("DB_USER or DB_PASSWORD cannot stand in a URL".into());
        url.set_port(Some(port)).map_err(refused)?;
        url.set_username(user.as_deref().unwrap_or("postgres")).map_err(refused)?;
        url.set_password(password.as_deref()).map_err(refused)?;
        url.set_path(name.as_deref().unwrap_or("postgres"));
        Ok(Some(Target::Postgres(String::from(url).into())))
    }

    pub fn schema(&self) -> Result<Schema> {
        match self.first(["DB_SCHEMA", "API_PG_DB_SCHEMA"]) {
            Some(name) => Schema::parse(&name),
            None => Ok(Schema::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &'static [(&str, &str)]) -> Environment<impl Fn(&str) -> Option<String>> {
        Environment(move |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn url(target: Option<Target>) -> String {
        match target {
            Some(Target::Postgres(url)) => url.expose_secret().to_owned(),
            other => panic!("not a server: {other:?}"),
        }
    }

    #[test]
    fn db_url_wins() {
        let env = environment(&[("DB_URL", "postgres://a/b"), ("DB_HOST", "c")]);
        assert_eq!(url(env.target().unwrap()), "postgres://a/b");
    }

    #[test]
    fn each_variable_falls_back_to_its_older_name() {
        let env = environment(&[
            ("DB_HOST", "db.example"),
            ("API_PG_DB_HOST", "ignored"),
            ("API_PG_DB_PORT", "6432"),
            ("API_PG_DB_USERNAME", "ana"),
            ("DB_PASSWORD", "p@ss/word"),
            ("API_PG_DB_DATABASE", "flow"),
            ("API_PG_DB_SCHEMA", "other"),
        ]);
        let made = url(env.target().unwrap());
        assert_eq!(made, "postgres://ana:p%40ss%2Fword@db.example:6432/flow");
        assert_eq!(env.schema().unwrap().name(), "other");
    }

    #[test]
    fn nothing_set_names_no_server_and_the_default_schema() {
        let env = environment(&[]);
        assert!(env.target().unwrap().is_none());
        assert_eq!(env.schema().unwrap(), Schema::default());
    }

    #[test]
    fn a_target_never_shows_its_password() {
        let target = Target::parse("postgres://u:hunter2@h:1/d?password=hunter2").unwrap();
        assert_eq!(target.to_string(), "postgres://h:1/d");
        assert!(!format!("{target:?}").contains("hunter2"));
    }

    #[test]
    fn another_scheme_is_refused_by_name() {
        let error = Target::parse("mysql://h/d").unwrap_err();
        assert!(error.to_string().contains("mysql://"));
    }
}
