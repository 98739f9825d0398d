//! What is measured, for Prometheus.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;
use lavra_db::Database;
use lavra_extract::model::Status;
use lavra_fleet::Fleet;
use lavra_fleet::model::{Proxy, WorkerStatus};
use lavra_tasks::Tasks;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Site};
use crate::health;
use crate::verbs::documented;

const SECONDS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];
/// Of attempts, some of which take a day.
const ATTEMPT_SECONDS: [f64; 13] =
    [0.005, 0.02, 0.1, 0.5, 2.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0];
const PATIENCE: Duration = Duration::from_secs(2);
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

type Text = ([(HeaderName, &'static str); 1], String);
type Asked = Result<(), Box<dyn std::error::Error + Send + Sync>>;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(scrape))
}

/// What a process that serves nothing else tells whoever asks, without a key: that it lives, and
/// what it counts.
pub fn measures(tasks: Tasks) -> Router {
    recorder();
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/metrics", get(scrape_runner))
        .with_state(tasks)
}

/// The recorder of this process, installed at the first call.
pub(crate) fn recorder() -> &'static PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| {
        // The whole name counts before its end.
        let buckets = [
            (Matcher::Suffix("_seconds".into()), &SECONDS),
            (Matcher::Full("lavra_task_seconds".into()), &ATTEMPT_SECONDS),
        ];
        let builder = buckets.into_iter().fold(PrometheusBuilder::new(), |builder, (of, list)| {
            // Only an empty list of buckets is refused.
            builder.set_buckets_for_metric(of, list).unwrap_or_default()
        });
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another recorder is installed: /metrics shows nothing");
        }
        describe();
        handle
    })
}

fn describe() {
    metrics::describe_counter!("lavra_http_requests_total", "Requests answered");
    metrics::describe_histogram!("lavra_http_request_seconds", "Until the answer began");
    metrics::describe_counter!("lavra_task_attempts_total", "Attempts that ended here");
    metrics::describe_histogram!("lavra_task_seconds", "How long attempts took here");
    let without_labels = [
        ("lavra_wrong_keys_total", "Keys that opened nothing"),
        ("lavra_task_takeovers_total", "Tasks taken from processes that stopped answering"),
        ("lavra_task_fenced_total", "Late writes that were refused"),
        ("lavra_outbox_published_total", "Messages that the broker has confirmed"),
    ];
    for (name, help) in without_labels {
        metrics::describe_counter!(name, help);
        // A series that begins at 1 has not increased: it is there before it counts.
        metrics::counter!(name).increment(0);
    }
    metrics::describe_gauge!("lavra_tasks_waiting", "Tasks that may be claimed now");
    metrics::describe_gauge!("lavra_outbox_rows", "Messages that wait for the broker");
    metrics::describe_gauge!("lavra_database_up", "Whether the database answered the scrape");
    metrics::describe_gauge!("lavra_missions", "Missions, by where they are");
    metrics::describe_gauge!("lavra_workers", "Active workers of the fleet, by status");
    metrics::describe_gauge!("lavra_proxies", "Proxies, by whether they are in use or inactive");
    metrics::describe_gauge!("lavra_extraction_lists", "Lists of a month each, by status");
}

/// Counts a request by the route it matched, as documented, and its status.
pub(crate) async fn count(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let route = path.map_or_else(|| "none".to_owned(), |path| documented(path).into_owned());
    let method = known(request.method());
    let start = Instant::now();
    let response = next.run(request).await;
    let (status, elapsed) = (response.status().as_u16(), start.elapsed());
    tracing::debug!(method, route, status, ?elapsed, "answered");
    let labels = [("method", method.to_owned()), ("route", route), ("status", status.to_string())];
    metrics::counter!("lavra_http_requests_total", &labels).increment(1);
    metrics::histogram!("lavra_http_request_seconds", &labels[..2]).record(elapsed.as_secs_f64());
    response
}

/// A caller can invent methods; the labels must not grow with them.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// Metrics for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operations",
    operation_id = "metrics",
    responses((status = 200, description = "In the text format", content_type = "text/plain", body = String)),
)]
pub(crate) async fn scrape(State(app): State<Arc<App>>) -> Text {
    let asked = async {
        look_at_tasks(&app.tasks).await?;
        look_at_the_fleet(&app.fleet).await?;
        look_at_extractions(&app.database).await
    };
    told(asked).await
}

async fn scrape_runner(State(tasks): State<Tasks>) -> Text {
    told(look_at_tasks(&tasks)).await
}

/// Everything that is measured, with the gauges that are a question to the database asked just before.
async fn told(asked: impl Future<Output = Asked>) -> Text {
    let recorder = recorder();
    let asked = tokio::time::timeout(PATIENCE, asked).await;
    let up = matches!(asked, Ok(Ok(())));
    metrics::gauge!("lavra_database_up").set(f64::from(u8::from(up)));
    recorder.run_upkeep();
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], recorder.render())
}

async fn look_at_tasks(tasks: &Tasks) -> Asked {
    let waiting = tasks.store().waiting().await?;
    for kind in tasks.store().declared().await? {
        let backlog = waiting.iter().find(|waiting| waiting.kind == kind);
        let ready = backlog.map_or(0, |waiting| waiting.ready);
        metrics::gauge!("lavra_tasks_waiting", "type" => kind).set(ready as f64);
    }
    let outbox = tasks.store().outbox_depth().await?;
    metrics::gauge!("lavra_outbox_rows").set(outbox as f64);
    Ok(())
}

async fn look_at_the_fleet(fleet: &Fleet) -> Asked {
    let counts = fleet.store.counts().await?;
    let missions = [
        ("bank", counts.bank),
        ("queued", counts.queued),
        ("scraping", counts.extracao),
        ("storing", counts.armazenamento),
        ("completed", counts.completed),
        ("failed", counts.failed),
        ("canceled", counts.canceled),
    ];
    for (status, count) in missions {
        metrics::gauge!("lavra_missions", "status" => status).set(count as f64);
    }
    let workers = fleet.store.workers().await?;
    for status in WorkerStatus::ALL {
        let such = workers.iter().filter(|worker| worker.active && worker.status == *status);
        metrics::gauge!("lavra_workers", "status" => status.as_str()).set(such.count() as f64);
    }
    let proxies = fleet.store.proxies().await?;
    for state in ["free", "in_use", "inactive"] {
        let such = proxies.iter().filter(|proxy| state_of(proxy) == state);
        metrics::gauge!("lavra_proxies", "state" => state).set(such.count() as f64);
    }
    Ok(())
}

fn state_of(proxy: &Proxy) -> &'static str {
    match (proxy.in_use_by_worker_id.is_some(), proxy.active) {
        (true, _) => "in_use",
        (false, true) => "free",
        (false, false) => "inactive",
    }
}

async fn look_at_extractions(database: &Database) -> Asked {
    for source in lavra_extract::sources(database).await? {
        let Some(tasks) = source.tasks else { continue };
        for status in Status::ALL {
            let labels = [("source", source.name.clone()), ("status", status.to_string())];
            let count = tasks.get(&status).copied().unwrap_or_default();
            metrics::gauge!("lavra_extraction_lists", &labels).set(count as f64);
        }
    }
    Ok(())
}
