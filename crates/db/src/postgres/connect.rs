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
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Pg;
use crate::{Error, Result, tls};

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
        let (mut lasting, host) = (false, self.host.clone());
        let reason = match error {
            PoolError::Backend(error) => {
                let reason = reason(error);
                lasting = is_lasting(error, &reason);
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
        Error::Unreachable { host, reason, lasting }
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

/// Whether waiting does not help. A pooler wraps the server's refusal into words of its own.
fn is_lasting(error: &tokio_postgres::Error, reason: &str) -> bool {
    let refused = |code: &str| code.starts_with("28") || code.starts_with("3D");
    error.code().is_some_and(|state| refused(state.code()))
        || ["authentication failed", "does not exist", "no such database", "no such user"]
            .iter()
            .any(|words| reason.contains(words))
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
        let Err(error) = pg.synchronise().await else { return Ok(()) };
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
    fn a_url_that_cannot_be_used_is_refused_without_its_password() {
        for bad in ["postgres://u:hunter2@h:port/d", "postgres://u:hunter2@h/d?sslmode=hunter2"] {
            let error = config(bad).unwrap_err().to_string();
            assert!(error.starts_with("the PostgreSQL URL cannot be used: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
