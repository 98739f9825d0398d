//! The real extractor under virtual time: the world answers without sockets, the store is in memory,
//! and an hour of waiting takes no time at all.

mod breakers;
mod drift;
mod limits;
mod outages;
mod outside;
mod seeds;
mod silence;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use lavra_extract::event::{Event, Summary};
use lavra_extract::host::Host;
use lavra_extract::model::{Extraction, ExtractionId, Status, Window};
use lavra_extract::plan::Wanted;
use lavra_extract::source::Source;
use lavra_extract::store::{Reads as _, Scope, Store};
use lavra_extract::{Extractor, Memory, Settings};
use lavra_tasks::model::ProcessId;
use lavra_world::{Endpoint, Entry, Faults, Latency, WorldConfig, page_entries};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use outside::{Outside, Trouble};

/// When it all begins; the months that are read are long over.
const NOW: &str = "2026-10-15T15:00:00Z";

/// Lists by the name of the plan, with the fan-out of those that have one.
type List = (&'static str, Endpoint, Option<u16>);
const CONTRATOS: List = ("contratos_publicacao", Endpoint::Contratos, None);
const ATAS: List = ("atas_atualizacao", Endpoint::AtasAtualizacao, None);
const PREGOES: List =
    ("contratacoes_publicacao_modalidade_6", Endpoint::ContratacoesPublicacao, Some(6));
const CONCURSOS: List =
    ("contratacoes_publicacao_modalidade_2", Endpoint::ContratacoesPublicacao, Some(2));
const COBRANCAS: List = ("instrumentoscobranca_inclusao", Endpoint::InstrumentosCobranca, None);
const PLANOS: List = ("pca_atualizacao", Endpoint::PcaAtualizacao, None);
const PROPOSTAS: List = ("contratacoes_proposta", Endpoint::ContratacoesProposta, None);
/// One for whose values a source file has to be written.
const CLASSE: List = ("pca_classificacao_classificacao_7512", Endpoint::Pca, Some(7512));

const LISTS: [List; 6] = [CONTRATOS, ATAS, PREGOES, CONCURSOS, COBRANCAS, PLANOS];

/// What is extracted, from where and into what.
struct Simulation {
    memory: Memory,
    outside: Arc<Outside>,
    source: Source,
    settings: Settings,
    lists: Vec<List>,
    months: (&'static str, &'static str),
}

/// A run that came to its end.
struct Ran {
    summary: Summary,
    events: Vec<Told>,
}

/// What was told, and when.
#[derive(Debug)]
struct Told {
    at: Duration,
    event: Event,
}

fn latency(fixed_ms: u64) -> Latency {
    Latency { fixed_ms, jitter_ms: fixed_ms / 2, per_hundred_pages_ms: 0 }
}

impl Simulation {
    fn new(config: WorldConfig, faults: Faults, trouble: Trouble, lists: &[List]) -> Self {
        let now = NOW.parse().unwrap();
        let mut source = Source::built_in("pncp").unwrap().unwrap();
        source.base_url = "http://world.invalid/api/consulta".parse().unwrap();
        source.limits.in_flight = 16;
        for endpoint in &mut source.endpoints {
            endpoint.page_size = endpoint.page_size_range.0;
        }
        let world = lavra_world::World::new(WorldConfig { now: Some(now), ..config });
        world.set_faults(faults).unwrap();
        let memory = Memory::new(now);
        let (timeout, max_body) = (source.limits.timeout, source.limits.max_body);
        let outside = Outside::new(world, timeout, max_body, trouble, memory.clone());
        Self {
            memory,
            outside: Arc::new(outside),
            source,
            settings: Settings::default(),
            lists: lists.to_vec(),
            months: ("2025-03", "2025-04"),
        }
    }

    fn wanted(&self) -> Wanted {
        let (from, to) = (self.months.0.parse().unwrap(), self.months.1.parse().unwrap());
        let endpoints = self.lists.iter().map(|(name, ..)| (*name).to_owned()).collect();
        Wanted { from, to, endpoints }
    }

    fn scope(&self) -> Scope {
        let wanted = self.wanted();
        let (from, to) = (wanted.from.first(), wanted.to.last());
        Scope { endpoints: wanted.endpoints, from, to }
    }

    /// What a process would run, and what it will tell.
    fn extractor(&self, process: ProcessId) -> (Extractor, mpsc::UnboundedReceiver<Event>) {
        let (events, heard) = mpsc::unbounded_channel();
        let extractor = Extractor {
            store: Arc::new(self.memory.clone()),
            host: Host::new(self.source.limits.in_flight, self.settings.breaker),
            source: Arc::new(self.source.clone()),
            client: Arc::clone(&self.outside) as _,
            process,
            pulse: lavra_tasks::Pulse::default(),
            run: process.to_string(),
            asked_at: Store::clock(&self.memory).now(),
            settings: self.settings,
            events,
            stop: CancellationToken::new(),
        };
        (extractor, heard)
    }

    /// A process with this number begins, and lives until what is returned is dropped.
    fn process(&self, number: u64) -> (ProcessId, AbortOnDropHandle<()>) {
        let process = ProcessId(Uuid::from_u128(number.into()));
        let memory = self.memory.clone();
        memory.beat(process);
        let beating = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(3)).await;
                memory.beat(process);
            }
        });
        (process, AbortOnDropHandle::new(beating))
    }

    /// One run from its beginning to its end.
    async fn run(&self) -> Ran {
        let (process, _alive) = self.process(1);
        let (extractor, mut heard) = self.extractor(process);
        let begun = self.outside.begun;
        let listening = tokio::spawn(async move {
            let mut events = Vec::new();
            while let Some(event) = heard.recv().await {
                events.push(Told { at: Instant::now().duration_since(begun), event });
            }
            events
        });
        let summary = extractor.run(&self.wanted(), false).await.unwrap();
        self.memory.retire(process);
        Ran { summary, events: listening.await.unwrap() }
    }

    async fn tasks(&self) -> Vec<Extraction> {
        self.memory.tasks(&self.scope()).await.unwrap()
    }

    async fn windows(&self, task: &ExtractionId) -> Vec<Window> {
        self.memory.windows(task).await.unwrap()
    }

    /// Every task is complete and has the world's records, each once. Says how many there are.
    async fn assert_true(&self) -> usize {
        let mut compared = 0;
        for task in self.tasks().await {
            let verdict = task.verdict.as_deref();
            assert_eq!((task.status, verdict), (Status::Complete, Some("exact")), "{task:?}");
            assert_eq!((task.process, task.last_error.as_deref()), (None, None), "{task:?}");
            let of = |(name, ..): &&List| *name == task.endpoint_name;
            let (_, endpoint, fan_out) = *self.lists.iter().find(of).unwrap();
            let mut stored = Vec::new();
            for body in self.memory.promised(&task.task_id) {
                stored.extend(page_entries(endpoint, std::str::from_utf8(&body).unwrap()).unwrap());
            }
            let mut truth = self.truth(endpoint, fan_out, task.data_date);
            truth.sort();
            stored.sort();
            let id = &task.task_id;
            assert_eq!(stored.len(), truth.len(), "{id}: {task:?}");
            assert!(stored == truth, "{id}: other records than the world has");
            compared += stored.len();
        }
        compared
    }

    fn truth(&self, endpoint: Endpoint, fan_out: Option<u16>, first: Date) -> Vec<Entry> {
        // As the list is asked: the last day of plans is not part of the answer.
        let last = match endpoint {
            Endpoint::PcaAtualizacao => first.last_of_month().tomorrow().unwrap(),
            _ => first.last_of_month(),
        };
        self.outside.world.truth(endpoint, fan_out, first, last).entries().collect()
    }
}

impl Ran {
    fn told(&self, what: impl Fn(&Event) -> bool) -> impl Iterator<Item = &Told> {
        self.events.iter().filter(move |told| what(&told.event))
    }

    /// The endpoints that were told to be away, and those that were told to be back.
    fn outages(&self) -> (Vec<&str>, Vec<&str>) {
        let (mut away, mut back) = (Vec::new(), Vec::new());
        for told in &self.events {
            match &told.event {
                Event::OutageBegan { endpoint, .. } => away.push(endpoint.as_str()),
                Event::OutageEnded { endpoint } => back.push(endpoint.as_str()),
                _ => {}
            }
        }
        away.sort_unstable();
        back.sort_unstable();
        (away, back)
    }
}
