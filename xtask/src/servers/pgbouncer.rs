//! A private PgBouncer in transaction mode, before whichever PostgreSQL the tests use: what breaks
//! behind a pooler (session state, named statements, advisory locks of a session) must break in a test.

use std::net::TcpStream;
use std::time::Duration;

use anyhow::Result;

use super::url::ServerUrl;
use crate::apt::Package;
use crate::daemon::Daemon;
use crate::ports;
use crate::scratch::Scratch;
use crate::user::{DeathSignal, User};

/// The pooler. It stops when dropped.
#[derive(Debug)]
pub(crate) struct PgBouncer {
    // Before the directory it logs to, so that it ends first.
    _daemon: Daemon,
    _scratch: Scratch,
    url: String,
}

impl PgBouncer {
    pub(crate) fn start(server: &ServerUrl) -> Result<Self> {
        let user = User::of_service("postgres")?;
        let scratch = Scratch::new("pgbouncer", &user)?;
        let port = ports::free()?;
        let file = scratch.write("pgbouncer.ini", &settings(server, port), &user)?;
        let mut command = user.command(&Package::PgBouncer.path()?, Some(DeathSignal::Interrupt));
        command.arg("--quiet").arg(file).env_clear().current_dir(scratch.path());
        let mut daemon = Daemon::start("PgBouncer", command, &scratch.join("pgbouncer.log"))?;
        daemon.wait_until(Duration::from_secs(20), || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        Ok(Self { _daemon: daemon, _scratch: scratch, url: server.at("127.0.0.1", port) })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Any database by its own name; any client, as the one user that the server is reached by.
/// Idle connections end soon: a database of a test can then be dropped.
fn settings(server: &ServerUrl, port: u16) -> String {
    let ServerUrl { user, host, port: server_port, .. } = server;
    let password = server
        .password
        .as_ref()
        .map(|password| format!(" password={password}"))
        .unwrap_or_default();
    format!(
        "[databases]\n\
         * = host={host} port={server_port} user={user}{password}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         max_client_conn = 500\n\
         default_pool_size = 20\n\
         server_idle_timeout = 10\n\
         server_reset_query =\n\
         ignore_startup_parameters = extra_float_digits,options,search_path,statement_timeout,lock_timeout,idle_in_transaction_session_timeout\n\
         log_connections = 0\n\
         log_disconnections = 0\n"
    )
}
