//! How a connection is made: TLS that verifies, time limits, and errors that name the host and
//! the reason but never the password.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime};
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Pg;
use crate::{Error, Result};

const POOL_SIZE: usize = 16;
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const POOL_WAIT: Duration = Duration::from_secs(10);

/// What is needed to open a connection, parsed once.
pub(super) struct Dial {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    pub(super) host: String,
}

impl Dial {
    pub(super) fn parse(url: &SecretString) -> Result<Self> {
        let text = url.expose_secret();
        let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| {
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Error::Config(format!("the PostgreSQL URL cannot be used: {reason}"))
        })?;
        config.connect_timeout(CONNECT_LIMIT);
        config.keepalives_idle(Duration::from_secs(15));
        config.tcp_user_timeout(Duration::from_secs(20));
        if config.get_application_name().is_none() {
            config.application_name("lavra");
        }
        // Beyond this machine an unencrypted connection must be asked for by name.
        let says_sslmode = text.contains("sslmode=");
        if !says_sslmode && !config.get_hosts().iter().all(is_local) {
            config.ssl_mode(SslMode::Require);
        }
        let host = host_text(&config);
        Ok(Self { config, tls: tls()?, host })
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
        let reason = match error {
            PoolError::Backend(error) => reason(error),
            PoolError::Timeout(_) => "no connection became free in time".to_owned(),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                error.to_string()
            }
        };
        Error::Unreachable { host: self.host.clone(), reason }
    }
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

fn tls() -> Result<MakeRustlsConnect> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| Error::Config(format!("TLS cannot be set up: {error}")))?;
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// A server that is just starting is waited for; a wrong password is not.
pub(super) async fn until_it_answers(pg: &Pg, patience: Duration) -> Result<()> {
    let deadline = Instant::now() + patience;
    let mut wait = Duration::from_millis(100);
    loop {
        let Err(error) = pg.synchronise().await else { return Ok(()) };
        let hopeless = match &error {
            Error::Unreachable { reason, .. } => {
                reason.contains("authentication") || reason.contains("does not exist")
            }
            other => !other.is_transient(),
        };
        if hopeless || Instant::now() + wait > deadline {
            return Err(error);
        }
        tracing::warn!(%error, retry_in = ?wait, "waiting for PostgreSQL");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(2));
    }
}
