//! A small world, and one who reads it.

use std::sync::OnceLock;

use bytes::Bytes;
use jiff::civil::Date;
use lavra_world::{Answer, Body, Ending, Endpoint, Entry, Faults, Request, World, WorldConfig};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const JULY: (&str, &str) = ("20240701", "20240731");

pub(crate) fn config() -> WorldConfig {
    let now = "2026-10-15T12:00:00-03:00".parse().unwrap();
    WorldConfig { seed: 7, scale: 0.01, now: Some(now), fixed: None }
}

pub(crate) fn world() -> World {
    World::new(config())
}

pub(crate) fn world_with(change: impl FnOnce(&mut Faults)) -> World {
    let world = world();
    let mut faults = Faults::default();
    change(&mut faults);
    world.set_faults(faults).unwrap();
    world
}

/// An answer, taken as a client takes it.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) status: u16,
    pub(crate) ending: Ending,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

pub(crate) fn take(answer: Answer) -> Taken {
    let bytes = match &answer.body {
        Body::Bytes(bytes) => bytes.clone(),
        Body::Filler(length) => Bytes::from(Body::filler(*length).collect::<Vec<_>>().concat()),
    };
    let (status, ending, headers) = (answer.status, answer.ending, answer.headers.clone());
    answer.delivered();
    Taken { status, ending, headers, text: String::from_utf8_lossy(&bytes).into_owned() }
}

pub(crate) fn get(world: &World, target: &str) -> Taken {
    take(world.answer(&Request::get(target)))
}

impl Taken {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A window of each list that has records, and the fan-out value that goes with it.
pub(crate) fn windows() -> Vec<(Endpoint, Option<u16>, String)> {
    let all = Endpoint::ALL.into_iter().map(|endpoint| match endpoint {
        Endpoint::ContratacoesPublicacao | Endpoint::ContratacoesAtualizacao => {
            let dates = "dataInicial=20240701&dataFinal=20240731";
            (endpoint, Some(8), format!("{dates}&codigoModalidadeContratacao=8"))
        }
        Endpoint::ContratacoesProposta => (endpoint, None, "dataFinal=20270101".into()),
        Endpoint::PcaAtualizacao => (endpoint, None, "dataInicio=20260601&dataFim=20260608".into()),
        Endpoint::Pca => {
            (endpoint, Some(7060), "anoPca=2025&codigoClassificacaoSuperior=7060".into())
        }
        Endpoint::PcaUsuario => (endpoint, Some(12), "anoPca=2025&idUsuario=12".into()),
        Endpoint::InstrumentosCobranca => {
            (endpoint, None, "dataInicial=20260101&dataFinal=20260131".into())
        }
        _ => (endpoint, None, "dataInicial=20240701&dataFinal=20240731".into()),
    });
    all.collect()
}

/// The first and last day of [`windows`] of an endpoint.
pub(crate) fn days(endpoint: Endpoint) -> (Date, Date) {
    let (from, to) = match endpoint {
        Endpoint::ContratacoesProposta => ("20261015", "20270101"),
        Endpoint::PcaAtualizacao => ("20260601", "20260608"),
        Endpoint::Pca | Endpoint::PcaUsuario => ("20250101", "20251231"),
        Endpoint::InstrumentosCobranca => ("20260101", "20260131"),
        _ => JULY,
    };
    (date(from), date(to))
}

pub(crate) fn date(text: &str) -> Date {
    Date::strptime("%Y%m%d", text).unwrap()
}

/// All records of a window, page after page until none is left.
pub(crate) fn read_all(world: &World, endpoint: Endpoint, query: &str, size: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    for page in 1.. {
        let target = format!("{endpoint}?{query}&pagina={page}&tamanhoPagina={size}");
        let taken = get(world, &target);
        assert_eq!(taken.status, 200, "{target}: {taken:?}");
        entries.extend(lavra_world::page_entries(endpoint, &taken.text).unwrap());
        let json = taken.json();
        assert_eq!(json["numeroPagina"], page);
        if json["paginasRestantes"] == 0 {
            assert_eq!(json["totalPaginas"], page);
            return entries;
        }
    }
    unreachable!("pages end")
}

/// A world behind a socket, until dropped.
pub(crate) struct Served {
    pub(crate) world: World,
    pub(crate) base: String,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) http: reqwest::Client,
    _stop: DropGuard,
}

impl Served {
    pub(crate) async fn new(world: World) -> Self {
        static PROVIDER: OnceLock<()> = OnceLock::new();
        PROVIDER.get_or_init(|| {
            let _another_may_be_there = rustls::crypto::ring::default_provider().install_default();
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let (serving, stopped) = (world.clone(), stop.clone());
        tokio::spawn(async move { serving.serve(listener, stopped).await });
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let base = format!("http://{address}");
        Self { world, base, address, http, _stop: stop.drop_guard() }
    }

    pub(crate) async fn get(&self, target: &str) -> reqwest::Result<reqwest::Response> {
        self.http.get(format!("{}{target}", self.base)).send().await
    }

    pub(crate) async fn put_faults(&self, faults: &Value) -> reqwest::Response {
        let url = format!("{}/_world/faults", self.base);
        self.http.put(url).json(faults).send().await.unwrap()
    }
}

pub(crate) fn contratos(page: u64) -> String {
    let (from, to) = JULY;
    format!("/v1/contratos?dataInicial={from}&dataFinal={to}&pagina={page}&tamanhoPagina=50")
}
