//! How a connection is made: TLS that verifies, time limits, and errors that name the host and
//! the reason but never the password.

use std::error::Error as _;
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Pg;
use crate::{Error, Refusal, Result, tls};

/// The first version that has all that the tables need.
const OLDEST: i32 = 15;
const POOL_SIZE: usize = 16;
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const POOL_WAIT: Duration = Duration::from_secs(10);

/// What is needed to open a connection, parsed once.
pub(super) struct Dial {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    pub(super) host: String,
}

impl Dial {
    pub(super) fn parse(url: &SecretString) -> Result<Self> {
        let config = config(url.expose_secret())?;
        let host = host_text(&config);
        Ok(Self { config, tls: MakeRustlsConnect::new(tls()), host })
    }

    pub(super) fn pool(&self) -> Result<Pool> {
        let manager = Manager::from_config(
            self.config.clone(),
            self.tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        Pool::builder(manager)
            .max_size(POOL_SIZE)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(POOL_WAIT))
            .create_timeout(Some(CONNECT_LIMIT))
            .build()
            .map_err(Error::thread)
    }

    pub(super) fn unreachable(&self, error: &PoolError) -> Error {
        let (mut refusal, host) = (None, self.host.clone());
        let reason = match error {
            PoolError::Backend(error) => {
                let reason = reason(error);
                refusal = self.refusal(error, &reason);
                reason
            }
            PoolError::Timeout(TimeoutType::Wait) => {
                format!("none of {POOL_SIZE} connections became free within {POOL_WAIT:?}")
            }
            PoolError::Timeout(_) => format!("no answer within {CONNECT_LIMIT:?}"),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                error.to_string()
            }
        };
        Error::Unreachable { host, reason, refusal }
    }

    /// Why waiting does not help. A pooler wraps the server's refusal into words of its own.
    fn refusal(&self, error: &tokio_postgres::Error, reason: &str) -> Option<Refusal> {
        let code = error.code().map(SqlState::code).unwrap_or_default();
        let has = |words: &[&str]| words.iter().any(|words| reason.contains(words));
        let user = self.config.get_user().unwrap_or_default();
        let lost = has(&["does not exist"]);
        if code.starts_with("3D") || has(&["no such database"]) || lost && has(&["database \""]) {
            let name = self.config.get_dbname().unwrap_or(user);
            return Some(Refusal::NoDatabase(name.to_owned()));
        }
        let is_role = code == "28P01" || lost && has(&["role \""]);
        if is_role || has(&["authentication failed", "no such user"]) {
            return Some(Refusal::NotThatRole(user.to_owned()));
        }
        if has(&["invalid peer certificate"]) {
            return Some(Refusal::Untrusted);
        }
        if has(&["server does not support TLS"]) {
            return Some(Refusal::NoTls);
        }
        (code.starts_with("28") || lost).then_some(Refusal::Other)
    }
}

fn config(url: &str) -> Result<Config> {
    // Every certificate is verified, so the stricter modes mean the same here.
    let url = url.replace("sslmode=verify-full", "sslmode=require");
    let url = url.replace("sslmode=verify-ca", "sslmode=require");
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        Error::Config(format!("the PostgreSQL URL cannot be used: {reason}"))
    })?;
    config.connect_timeout(CONNECT_LIMIT);
    config.keepalives_idle(Duration::from_secs(15));
    config.tcp_user_timeout(Duration::from_secs(20));
    if config.get_application_name().is_none() {
        config.application_name("lavra");
    }
    // Beyond this machine an unencrypted connection must be asked for by name; on it, a server's
    // self-made certificate could not be verified.
    if !url.contains("sslmode=") {
        let is_local = config.get_hosts().iter().all(is_local);
        config.ssl_mode(if is_local { SslMode::Disable } else { SslMode::Require });
    }
    Ok(config)
}

/// The innermost cause is what a person can act on: «Connection refused», «password
/// authentication failed for user …».
pub(super) fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        return db.message().to_owned();
    }
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
    }
}

fn host_text(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts().first() {
        Some(Host::Tcp(name)) => format!("{name}:{port}"),
        Some(Host::Unix(path)) => format!("{} (port {port})", path.display()),
        None => format!("localhost:{port}"),
    }
}

/// A server that is just starting is waited for; a wrong password is not.
pub(super) async fn until_it_answers(pg: &Pg, patience: Duration) -> Result<()> {
    let deadline = Instant::now() + patience;
    let first = Duration::from_millis(100);
    let mut wait = first;
    loop {
        let Err(error) = pg.synchronise().await else { break };
        if !error.is_transient() || Instant::now() + wait > deadline {
            return Err(error);
        }
        if wait == first {
            tracing::warn!(%error, ?patience, "waiting for PostgreSQL");
        } else {
            tracing::debug!(%error, retry_in = ?wait, "still waiting for PostgreSQL");
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(2));
    }
    let operation = "read the server's version";
    let sql = "SELECT current_setting('server_version_num')::int4";
    let rows = pg.query(operation, sql, &[]).await?;
    let number = rows.first().map(|row| row.try_get(0)).transpose();
    match number.map_err(|source| Error::Postgres { operation, source })? {
        Some(number) => is_new_enough(&pg.dial.host, number),
        None => Ok(()),
    }
}

/// `number` as in 150004, for 15.4.
fn is_new_enough(host: &str, number: i32) -> Result<()> {
    let version = number / 10_000;
    if version >= OLDEST {
        return Ok(());
    }
    Err(Error::Config(format!(
        "PostgreSQL at {host} is version {version}, and lavra needs {OLDEST} or later \
         (docs/operations.md#postgresql)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssl_mode(url: &str) -> SslMode {
        config(url).unwrap().get_ssl_mode()
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear_unasked() {
        for local in ["localhost", "127.0.0.1", "[::1]", "%2Frun%2Fpostgresql"] {
            assert_eq!(ssl_mode(&format!("postgres://u@{local}/d")), SslMode::Disable, "{local}");
        }
        assert_eq!(ssl_mode("postgres://u@db.example/d"), SslMode::Require);
        assert_eq!(ssl_mode("postgres://u@10.0.0.7/d"), SslMode::Require);
        assert_eq!(ssl_mode("postgres://u@db.example/d?sslmode=disable"), SslMode::Disable);
    }

    #[test]
    fn the_modes_that_verify_are_known() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let url = format!("postgres://u@localhost/d?sslmode={mode}");
            assert_eq!(ssl_mode(&url), SslMode::Require, "{mode}");
        }
    }

    #[test]
    fn a_server_that_is_too_old_is_told_with_what_is_needed() {
        for number in [150_000, 150_004, 180_001] {
            is_new_enough("db:5432", number).unwrap();
        }
        let error = is_new_enough("db:5432", 140_011).unwrap_err().to_string();
        assert!(error.contains("db:5432 is version 14, and lavra needs 15"), "{error}");
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_without_its_password() {
        for bad in ["postgres://u:hunter2@h:port/d", "postgres://u:hunter2@h/d?sslmode=hunter2"] {
            let error = config(bad).unwrap_err().to_string();
            assert!(error.starts_with("the PostgreSQL URL cannot be used: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
