//! `lavra worker`: the Worker API, for an orchestrator to call.

use std::path::{Path, PathBuf};

use lavra_extract::source::Source;
use lavra_worker::{Config, Worker};
use tokio::net::TcpListener;
use url::Url;

use super::{on_signal, read_file};
use crate::cli::WorkerArgs;
use crate::exit::{BadUsage, Exit};
use crate::node::Place;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::variables::Variable;

pub(crate) const LISTEN: &str = "127.0.0.1:8100";
pub(crate) const DATA: &str = "lavra-worker";
pub(crate) const ADS: &str = "ads";

pub(crate) async fn run(
    settings: &Settings,
    args: &WorkerArgs,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let file = &settings.worker;
    let place = args.listen.as_ref().or(file.listen.as_ref());
    let config = Config {
        data: args.data.clone().or(file.data.clone()).unwrap_or_else(|| PathBuf::from(DATA)),
        api_key: Variable::WorkerApiKey.read().filter(|key| !key.is_empty()).map(Into::into),
        source: source(
            args.source.as_deref().or(file.source.as_deref()).unwrap_or(ADS),
            args.base_url.as_deref().or(file.base_url.as_deref()),
        )?,
        endpoint: args.endpoint.clone().or(file.endpoint.clone()),
        storage: args.storage.clone().or(file.storage.clone()),
        timing: file.timing(),
    };
    let has_key = config.api_key.is_some();
    let stop = on_signal()?;
    let listener = bind(place.map_or(LISTEN, String::as_str), has_key).await?;
    let address = listener.local_addr()?;
    if config.source.base_url.host_str().is_some_and(|host| host.ends_with(".invalid")) {
        let text = "the built-in ad library has no address of its own: say where yours is, with \
                    --base-url URL, or write a source (--source FILE)";
        return Err(BadUsage(text.into()).into());
    }
    let name = config.source.name.clone();
    let data = config.data.display().to_string();
    let worker = Worker::open(config).await.map_err(told)?;
    printer.note(&format!("the worker for {name} is at http://{address}, its jobs in {data}"));
    tracing::info!(url = %format!("http://{address}"), source = name, "a worker");
    worker.serve(listener, stop).await.map_err(told)?;
    Ok(Exit::Done)
}

/// Loopback, or with a key any address of this machine.
async fn bind(place: &str, has_key: bool) -> anyhow::Result<TcpListener> {
    let found = Place::find(place).await?;
    if !has_key && found.beyond_loopback().is_some() {
        let key = Variable::WorkerApiKey.name();
        return Err(BadUsage(format!(
            "--listen {place}: others than this machine only with an API key, in {key}"
        ))
        .into());
    }
    found.listen().await
}

fn told(error: lavra_worker::Error) -> anyhow::Error {
    match error {
        lavra_worker::Error::Invalid(_) | lavra_worker::Error::Held(_) => {
            BadUsage(error.to_string()).into()
        }
        error => error.into(),
    }
}

fn source(name: &str, base_url: Option<&str>) -> anyhow::Result<Source> {
    let wrong = |error: &dyn std::fmt::Display| BadUsage(format!("{name}: {error}"));
    let mut source = if name == ADS {
        lavra_worker::ads().map_err(|error| wrong(&error))?
    } else {
        let text = read_file("the source file", Path::new(name))?;
        Source::parse(&text).map_err(|error| wrong(&error))?
    };
    if let Some(url) = base_url {
        let wrong = || {
            let text = "it is where the source is, such as http://127.0.0.1:8092/v1";
            BadUsage(format!("--base-url {url}: {text}"))
        };
        let is_http = |url: &Url| matches!(url.scheme(), "http" | "https");
        source.base_url = url.parse().ok().filter(is_http).ok_or_else(wrong)?;
    }
    Ok(source)
}
