//! The orchestrator's own client against this writer: both sides mean the same.

use std::time::Duration;

use lavra_fleet::api::{Http, Reply, Trouble, WriteReport, WriteStatus, WriterApi};
use lavra_fleet::model::{Mission, Writer};
use serde_json::{Value, json};

use crate::support::{Answer, KEY, Site, World};

fn writer(url: &str) -> Writer {
    serde_json::from_value(json!({
        "id": "wri_1", "name": "w", "url": url, "active": true,
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
    }))
    .unwrap()
}

fn mission(job_id: &str, url: &str) -> Mission {
    serde_json::from_value(json!({
        "id": "mis_1", "date_start": "2026-01-01", "date_end": "2026-01-31", "media_type": "all",
        "languages": ["pt"], "status": "running", "checkpoint": "armazenamento",
        "writer_job_id": job_id, "worker_data_url": url, "retry_count": 0, "attempts": 1,
        "created_at": "2026-01-01T00:00:00Z",
    }))
    .unwrap()
}

lavra_testkit::on_each_engine!(the_orchestrator_and_the_writer_understand_each_other);

async fn the_orchestrator_and_the_writer_understand_each_other(mut world: World) {
    world.start().await;
    let ads: Vec<Value> = (0..50).map(|n| json!({ "id": format!("ad{n}"), "page": n })).collect();
    let mut some = ads.clone();
    some[7] = json!("not an ad");
    let (all, some) =
        (json!({ "ads": ads }).to_string(), json!({ "total": 50, "ads": some }).to_string());
    let site = Site::serve(move |path, _| match path {
        "/all.json" => Answer::ok(all.clone()),
        "/some.json" => Answer::ok(some.clone()),
        "/other.json" => Answer::ok(r#"{"items": []}"#),
        _ => Answer::status(404),
    })
    .await;
    let (http, writer) = (Http::new().unwrap(), writer(world.base()));
    let api = WriterApi {
        transport: &http,
        writer: &writer,
        api_key: Some(KEY.to_owned().into()),
        timeout: Duration::from_secs(10),
    };
    assert_eq!(api.health().await, Reply::Done);
    assert_eq!(api.status("550e8400-e29b-41d4-a716-446655440000").await, Reply::Unknown);

    let done = run(&world, &api, &mission("job-1", &site.url("/all.json"))).await;
    assert_eq!(done.status, WriteStatus::Completed);
    assert_eq!(
        (done.total, done.processed, done.success_count, done.failed_count),
        (Some(50), Some(50), Some(50), Some(0))
    );
    assert_eq!(world.count("public.ads").await, 50);

    let partial = run(&world, &api, &mission("job-2", &site.url("/some.json"))).await;
    assert_eq!(partial.status, WriteStatus::Partial);
    assert_eq!((partial.success_count, partial.failed_count), (Some(49), Some(1)));
    assert_eq!(partial.failed_items[0]["index"], 7);
    assert_eq!(partial.failed_items[0]["data"], "not an ad");

    for (job, path, code) in
        [("job-3", "/gone.json", "ERROR400"), ("job-4", "/other.json", "ERROR303")]
    {
        let failed = run(&world, &api, &mission(job, &site.url(path))).await;
        assert_eq!(failed.status, WriteStatus::Failed);
        assert_eq!(
            failed.error_code.map(|code| code.to_string()).as_deref(),
            Some(code),
            "{failed:?}"
        );
        assert!(failed.message.is_some());
    }

    let refused = api.process(&mission("job-5", "http://169.254.169.254/latest")).await;
    assert!(matches!(refused, Reply::Trouble(Trouble::Refused { .. })), "{refused:?}");
    let stranger = WriterApi { api_key: Some("wrong".to_owned().into()), ..api };
    assert!(matches!(stranger.status("job-1").await, Reply::Trouble(Trouble::Away { .. })));
}

async fn run(world: &World, api: &WriterApi<'_>, mission: &Mission) -> WriteReport {
    let job_id = mission.writer_job_id.clone().unwrap();
    let accepted = api.process(mission).await;
    assert_eq!(accepted, Reply::Accepted { job_id: Some(job_id.clone()) });
    world.end_of(&job_id).await;
    match api.status(&job_id).await {
        Reply::Write(report) => report,
        other => panic!("{other:?}"),
    }
}
