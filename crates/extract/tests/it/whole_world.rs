//! Whole runs against the world on loopback, with all its faults on; then every record is compared
//! with the truth.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::{Date, date};
use lavra_extract::audit::{Against, Audit};
use lavra_extract::client::Client;
use lavra_extract::event::Summary;
use lavra_extract::host::Host;
use lavra_extract::model::Status;
use lavra_extract::plan::Wanted;
use lavra_extract::source::Source;
use lavra_extract::store::Scope;
use lavra_extract::{Extractor, Settings};
use lavra_testkit::on_each_engine;
use lavra_world::{
    At, Change, Endpoint, Entry, Faults, Hang, InFlight, Latency, Outage, RetryAfter, WorldConfig,
    page_entries,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::World;

on_each_engine!(
    with_all_faults_on_every_record_is_there_once_and_then_nothing_is_asked_for,
    totals_that_grow_and_shrink_end_complete_with_the_truth_after_the_last_change,
);

/// The endpoints that are read, by the name of the plan, with the fan-out of those that have one.
const READ: [(&str, Endpoint, Option<u16>); 5] = [
    ("contratos_publicacao", Endpoint::Contratos, None),
    ("contratacoes_publicacao_modalidade_6", Endpoint::ContratacoesPublicacao, Some(6)),
    ("contratacoes_publicacao_modalidade_2", Endpoint::ContratacoesPublicacao, Some(2)),
    ("instrumentoscobranca_inclusao", Endpoint::InstrumentosCobranca, None),
    ("pca_atualizacao", Endpoint::PcaAtualizacao, None),
];

struct Outside {
    world: lavra_world::World,
    base: String,
    stop: CancellationToken,
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Outside {
    async fn begin(faults: Faults) -> Self {
        let now = "2026-10-15T12:00:00-03:00".parse().ok();
        let config = WorldConfig { seed: 11, scale: 0.02, now, fixed: None };
        let world = lavra_world::World::new(config);
        world.set_faults(faults).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/api/consulta", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let (serving, until) = (world.clone(), stop.clone());
        tokio::spawn(async move { serving.serve(listener, until).await });
        Self { world, base, stop }
    }
}

async fn run(world: &World, outside: &Outside) -> Summary {
    let mut source = Source::built_in("pncp").unwrap().unwrap();
    source.base_url = outside.base.parse().unwrap();
    source.limits.in_flight = 6;
    source.limits.timeout = Duration::from_secs(2);
    let settings = Settings {
        backoff: Duration::from_millis(10),
        longest_backoff: Duration::from_millis(200),
        ..Settings::default()
    };
    let (events, _heard) = mpsc::unbounded_channel();
    let extractor = Extractor {
        store: Arc::clone(&world.store),
        host: Host::new(source.limits.in_flight, settings.breaker),
        client: Arc::new(Client::new(&source, true).unwrap()),
        source: Arc::new(source),
        process: world.process().await,
        pulse: lavra_tasks::Pulse::default(),
        run: "test".into(),
        asked_at: world.store.clock().now(),
        settings,
        events,
        stop: CancellationToken::new(),
    };
    let endpoints = READ.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let (from, to) = ("2025-03".parse().unwrap(), "2025-04".parse().unwrap());
    extractor.run(&Wanted { from, to, endpoints }, false).await.unwrap()
}

/// Every record of the plan is there once, as it is in the world.
async fn assert_true(world: &World, outside: &Outside) {
    let mut compared = 0;
    for (name, endpoint, fan_out) in READ {
        for first in [date(2025, 3, 1), date(2025, 4, 1)] {
            let task = lavra_extract::model::ExtractionId::new(name, first);
            let row = world.store.task(&task).await.unwrap().unwrap();
            assert_eq!(
                (row.status, row.verdict.as_deref()),
                (Status::Complete, Some("exact")),
                "{row:?}"
            );
            let mut truth: Vec<Entry> = truth(outside, endpoint, fan_out, first).collect();
            let mut stored = Vec::new();
            for body in world.bodies(&task).await {
                stored.extend(page_entries(endpoint, &body).unwrap());
            }
            truth.sort();
            stored.sort();
            assert_eq!(stored.len(), truth.len(), "{task}");
            assert!(stored == truth, "{task}: other records than the world has");
            compared += stored.len();
        }
    }
    assert!(compared > 3000, "only {compared} records were compared");
}

/// The audit finds every page and every record once, and the source announces the same still.
async fn assert_audited(world: &World, outside: &Outside) {
    let mut source = Source::built_in("pncp").unwrap().unwrap();
    source.base_url = outside.base.parse().unwrap();
    let audit = Audit {
        store: Arc::clone(&world.store),
        against: Some(Against {
            client: Arc::new(Client::new(&source, true).unwrap()),
            host: Host::new(source.limits.in_flight, Settings::default().breaker),
        }),
        source: Arc::new(source),
        stop: CancellationToken::new(),
        repair: false,
    };
    let scope = Scope { endpoints: Vec::new(), from: date(2025, 1, 1), to: date(2025, 12, 31) };
    let report = audit.run(&scope, |_, _| {}).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    let truth: usize = READ
        .iter()
        .flat_map(|(_, endpoint, fan_out)| {
            [date(2025, 3, 1), date(2025, 4, 1)]
                .map(|first| truth(outside, *endpoint, *fan_out, first).count())
        })
        .sum();
    assert_eq!((report.tasks, report.complete, report.records), (10, 10, truth as u64));
    assert_eq!(report.repeated, 0);
    // A month whose first page failed again and again was halved.
    assert!(report.asked >= 10, "{report:?}");
}

fn truth(
    outside: &Outside,
    endpoint: Endpoint,
    fan_out: Option<u16>,
    first: Date,
) -> impl Iterator<Item = Entry> {
    // As the list is asked: the last day of plans is not part of the answer.
    let last = match endpoint {
        Endpoint::PcaAtualizacao => first.last_of_month().tomorrow().unwrap(),
        _ => first.last_of_month(),
    };
    let truth = outside.world.truth(endpoint, fan_out, first, last);
    truth.entries().collect::<Vec<_>>().into_iter()
}

async fn with_all_faults_on_every_record_is_there_once_and_then_nothing_is_asked_for(world: World) {
    let share = 0.03;
    let faults = Faults {
        too_many: share,
        retry_after: RetryAfter { share: 0.01, seconds: 0, as_date: false },
        server_error: share,
        gateway: share,
        input_string: share,
        dates: 0.01,
        hang: Hang { share: 0.005, at_most_ms: 10_000 },
        reset: share,
        cut_chunks: share,
        cut_length: share,
        html: share,
        zero_length: share,
        wrong_json: share,
        huge_total: 0.01,
        latency: Latency { fixed_ms: 1, jitter_ms: 5, per_hundred_pages_ms: 10 },
        in_flight: Some(InFlight { limits: vec![4, 2], every_ms: 500, as_server_error: true }),
        outage: Some(Outage { after_ms: 1000, lasts_ms: 1500, as_unavailable: true }),
        ..Faults::default()
    };
    let outside = Outside::begin(faults).await;
    let mut summary = run(&world, &outside).await;
    // A page that failed twelve times in a row is left for another run, as it should be.
    for _ in 0..3 {
        if summary.is_short() {
            summary = run(&world, &outside).await;
        }
    }
    assert!(!summary.is_short(), "{summary:?}");
    assert_true(&world, &outside).await;

    outside.world.set_faults(Faults::default()).unwrap();
    assert_audited(&world, &outside).await;
    let again = run(&world, &outside).await;
    assert_eq!((again.requests, again.complete), (0, 10), "{again:?}");
}

async fn totals_that_grow_and_shrink_end_complete_with_the_truth_after_the_last_change(
    world: World,
) {
    let change = |endpoint, fan_out, after, records, at| Change {
        endpoint,
        month: "2025-03".into(),
        fan_out,
        after,
        records,
        at,
    };
    let faults = Faults {
        drift: vec![
            change(Endpoint::Contratos, None, 3, 40, At::Start),
            change(Endpoint::Contratos, None, 6, -25, At::Middle),
            change(Endpoint::ContratacoesPublicacao, Some(6), 5, 60, At::Middle),
            change(Endpoint::PcaAtualizacao, None, 2, -30, At::End),
        ],
        ..Faults::default()
    };
    let outside = Outside::begin(faults).await;
    let summary = run(&world, &outside).await;
    assert!(!summary.is_short(), "{summary:?}");
    assert!(summary.drifts >= 3, "{summary:?}");
    assert_true(&world, &outside).await;
}
