//! The servers of a team, for documents that need them: private ones, started when the first session asks.
//!
//! A document shows them where its reader has them, on their usual ports; [`Team::addressed`] is the one place that
//! says otherwise. Names, roles and databases are those that are shown.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::apt;
use crate::servers::{PACKAGES, PgBouncer, Postgres, RabbitMq, ServerUrl, Tuning};

/// What documents name: the database of all of them, and the one that a backup is put back into.
const DATABASES: [&str; 2] = ["lavra", "lavra_restored"];

#[derive(Debug)]
pub(super) struct Team {
    pgbouncer: Place,
    postgres: Place,
    rabbitmq: Place,
    programs: TempDir,
    // In this order: the pooler ends before what is behind it.
    _pooler: PgBouncer,
    server: Postgres,
    _broker: RabbitMq,
}

/// What follows `user:password@` in a document, and what does here.
#[derive(Debug)]
struct Place {
    shown: &'static str,
    real: String,
}

impl Team {
    pub(super) fn start() -> Result<Self> {
        apt::ensure(PACKAGES)?;
        let server = Postgres::start(Tuning::Tests)?;
        let broker = RabbitMq::start()?;
        let postgres = ServerUrl::parse(&server.url("postgres"))?;
        let pooler = PgBouncer::start(&postgres)?;
        let pgbouncer = ServerUrl::parse(pooler.url())?;
        server.sql("postgres", "CREATE ROLE lavra LOGIN PASSWORD 'PASSWORD'")?;
        let programs = tempfile::tempdir()?;
        let control = programs.path().join("rabbitmqctl");
        std::fs::write(&control, broker.control()).context("cannot write rabbitmqctl")?;
        std::fs::set_permissions(&control, std::fs::Permissions::from_mode(0o755))?;
        let at = |port: u16, rest: &str| format!("@127.0.0.1:{port}/{rest}");
        Ok(Self {
            pgbouncer: Place { shown: "@127.0.0.1:6432/lavra", real: at(pgbouncer.port, "lavra") },
            postgres: Place { shown: "@127.0.0.1/lavra", real: at(postgres.port, "lavra") },
            rabbitmq: Place { shown: "@127.0.0.1/%2f", real: at(broker.port(), "%2f") },
            programs,
            _pooler: pooler,
            server,
            _broker: broker,
        })
    }

    /// An empty database `lavra`, and none of an earlier session. The broker only says that something waits.
    pub(super) fn begin_anew(&self) -> Result<()> {
        for database in DATABASES {
            let sql = format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)");
            self.server.sql("postgres", &sql)?;
        }
        self.server.sql("postgres", "CREATE DATABASE lavra OWNER lavra").map(drop)
    }

    /// A command with the addresses of these servers.
    pub(super) fn addressed(&self, text: &str) -> String {
        [&self.pgbouncer, &self.postgres, &self.rabbitmq]
            .iter()
            .fold(text.to_owned(), |text, place| text.replace(place.shown, &place.real))
    }

    /// Programs that a reader has for these servers; PostgreSQL's own need none.
    pub(super) fn programs(&self) -> &Path {
        self.programs.path()
    }

    /// Where PostgreSQL's own programs look if a document names no port.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        vec![("PGPORT", self.server.port().to_string())]
    }
}
