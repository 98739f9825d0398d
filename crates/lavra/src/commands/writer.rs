//! `lavra writer`: the Writer API, and the jobs behind it.

use std::time::Duration;

use anyhow::Context;
use lavra_db::{Database, Secrets, Target, migrate};
use lavra_fleet::keys::MayMake;
use lavra_writer::{Access, Config, Limits, Service, listen_refusal, router};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::on_signal;
use crate::cli::Writer;
use crate::exit::{BadUsage, Exit};
use crate::migrations;
use crate::node::{Node, Parts, Place, keyring, listen_anywhere};
use crate::settings::{Settings, WriterFile};
use crate::variables::Variable;

pub(crate) const LISTEN: &str = "127.0.0.1:8091";
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn run(mut settings: Settings, args: &Writer) -> anyhow::Result<Exit> {
    let file = std::mem::take(&mut settings.writer);
    let config = config(args, &file)?;
    let elsewhere = args.target.as_ref().or(file.target.as_ref());
    if let Some(target) = elsewhere {
        settings.target = Target::parse(target)?;
    }
    let stop = on_signal()?;
    let (database, node) = open(&settings).await?;
    let applied = match elsewhere {
        Some(_) => migrate(&database, lavra_writer::MIGRATIONS).await?,
        None => migrations::apply(&database, &[]).await?,
    };
    for id in applied {
        tracing::info!(id, database = %settings.target, "migrated");
    }
    let secrets = keyring(&database, settings.key_file.as_deref(), MayMake::Yes)?
        .map(|keyring| Secrets::new(database.clone(), keyring));
    if secrets.is_none() {
        tracing::warn!(
            "LAVRA_SECRET_KEY is not set: a job whose source needs headers or a signed URL does not \
             survive this process (lavra secret generate-key makes one)"
        );
    }
    let key = api_key(&file, secrets.as_ref()).await?;
    let listener = listener(args, &file, key.is_some()).await?;
    let service = Service::new(&database, config, secrets)?;
    let url = format!("http://{}", listener.local_addr()?);
    tracing::info!(%url, target = %settings.target, "writing");
    let others = async {
        match node {
            None => Ok(()),
            // Who opens a file also serves it: nobody else can.
            Some(node) => node.run(Some(listen_anywhere().await?), stop.clone()).await,
        }
    };
    tokio::try_join!(serve(service, listener, key.as_ref(), stop.clone()), others)?;
    Ok(Exit::Done)
}

/// A writer behind a socket: its API, and the jobs behind it, until `stop`.
pub(crate) async fn serve(
    service: Service,
    listener: TcpListener,
    key: Option<&SecretString>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let served = lavra_web::serve(listener, router(service.clone(), key), stop.clone());
    let served = async {
        let served = served.await.context("the HTTP server ended");
        stop.cancel();
        served
    };
    let ran = async {
        service.run(stop.clone()).await;
        anyhow::Ok(())
    };
    tokio::try_join!(served, ran)?;
    Ok(())
}

async fn open(settings: &Settings) -> anyhow::Result<(Database, Option<Node>)> {
    match &settings.target {
        Target::File(_) => {
            let parts = Parts { serve: true, ..Parts::default() };
            let node = Node::open(settings, parts).await?;
            Ok((node.database.clone(), Some(node)))
        }
        Target::Postgres(_) => {
            let schema = settings.schema.clone();
            Ok((Database::open(&settings.target, schema, PATIENCE).await?, None))
        }
    }
}

async fn api_key(
    file: &WriterFile,
    secrets: Option<&Secrets>,
) -> anyhow::Result<Option<SecretString>> {
    if let Some(key) = Variable::WriterApiKey.read().filter(|key| !key.is_empty()) {
        return Ok(Some(key.into()));
    }
    let Some(name) = &file.api_key_secret else { return Ok(None) };
    let found = match secrets {
        None => None,
        Some(secrets) => secrets.get(name).await?,
    };
    let text = format!("writer.api_key_secret: there is no secret {name:?} in this database");
    Ok(Some(found.ok_or(BadUsage(text))?))
}

async fn listener(args: &Writer, file: &WriterFile, has_key: bool) -> anyhow::Result<TcpListener> {
    let place = args.listen.as_deref().or(file.listen.as_deref()).unwrap_or(LISTEN);
    let place = Place::find(place).await?;
    let outside = place.beyond_loopback();
    if let Some(why) = outside.and_then(|address| listen_refusal(address, has_key)) {
        return Err(BadUsage(format!("--listen {why}")).into());
    }
    place.listen().await
}

pub(crate) fn config(args: &Writer, file: &WriterFile) -> anyhow::Result<Config> {
    let either = |flags: &Vec<String>, file: &Vec<String>| {
        if flags.is_empty() { file.clone() } else { flags.clone() }
    };
    let networks = either(&args.allow_private, &file.allow_private);
    let private = networks.iter().map(|text| text.parse());
    let private = private
        .collect::<Result<_, String>>()
        .map_err(|error| BadUsage(format!("--allow-private {error}")))?;
    let directories = either(&args.directory, &file.directories);
    let usual = Limits::default();
    let limits = Limits {
        bytes: file.max_bytes.unwrap_or(usual.bytes),
        unpacked_bytes: file.max_unpacked_bytes.unwrap_or(usual.unpacked_bytes),
        rows: file.max_rows.unwrap_or(usual.rows),
        request_bytes: file.max_request_bytes.unwrap_or(usual.request_bytes),
        batch_rows: file.batch_rows.unwrap_or(usual.batch_rows).max(1),
        batch_bytes: file.batch_bytes.unwrap_or(usual.batch_bytes).max(1),
        running: file.running.unwrap_or(usual.running).max(1),
        waiting: file.waiting.unwrap_or(usual.waiting),
        caps: lavra_writer::Caps {
            bytes: file.max_row_bytes.unwrap_or(usual.caps.bytes),
            ..usual.caps
        },
        ..usual
    };
    let access = Access {
        hosts: either(&args.allow_host, &file.allow_hosts),
        private,
        directories: directories.into_iter().map(Into::into).collect(),
        tables: file.tables.clone(),
    };
    Ok(Config { access, limits, ..Config::default() })
}
