//! The parts of a `postgres://` address that PgBouncer is told.

use anyhow::{Context, Result, bail};

/// `postgres://user[:password]@host[:port]/rest`, taken apart. Percent-encoding is not undone: test servers need none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) host: String,
    pub(crate) port: u16,
    rest: String,
}

impl ServerUrl {
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let unusable = || {
            format!(
                "LAVRA_TEST_POSTGRES is not like postgres://user@host:port/database: `{}`",
                without_password(url)
            )
        };
        let Some(address) =
            url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"))
        else {
            bail!(unusable());
        };
        let (authority, rest) = address.split_once('/').unwrap_or((address, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("postgres", authority));
        let (host, port) = place.rsplit_once(':').unwrap_or((place, "5432"));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password.to_owned())),
            None => (login, None),
        };
        let port = port.parse().with_context(unusable)?;
        Ok(Self {
            user: user.to_owned(),
            password,
            host: host.to_owned(),
            port,
            rest: rest.to_owned(),
        })
    }

    /// The same database by another server.
    pub(crate) fn at(&self, host: &str, port: u16) -> String {
        format!("postgres://{}@{host}:{port}/{}", self.user, self.rest)
    }
}

fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://…@{place}"),
        (Some(_), None) | (None, _) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let url = ServerUrl::parse("postgres://lavra:s3cret@db.example:6000/work?sslmode=disable")
            .unwrap();
        assert_eq!((url.user.as_str(), url.password.as_deref()), ("lavra", Some("s3cret")));
        assert_eq!((url.host.as_str(), url.port), ("db.example", 6000));
        assert_eq!(
            url.at("127.0.0.1", 7000),
            "postgres://lavra@127.0.0.1:7000/work?sslmode=disable"
        );
    }

    #[test]
    fn what_is_left_out_is_postgres_own_default() {
        let url = ServerUrl::parse("postgres://127.0.0.1").unwrap();
        assert_eq!((url.user.as_str(), url.port), ("postgres", 5432));
    }

    #[test]
    fn an_error_does_not_show_the_password() {
        let error = ServerUrl::parse("postgres://lavra:s3cret@host:port/x").unwrap_err();
        assert!(!format!("{error:#}").contains("s3cret"));
    }
}
