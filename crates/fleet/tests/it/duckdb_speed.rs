//! How long the verbs that are called all the time take on a file with many missions. Run by hand:
//! `cargo nextest run -p lavra-fleet --run-ignored all --no-capture -E 'test(duckdb_speed)'`.

use std::time::{Duration, Instant};

use jiff::civil::date;
use lavra_db::{Clock, Database, Schema, Target, migrate};
use lavra_fleet::api::{Reply, SessionStatus};
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::machine::worker::{Ask, after};
use lavra_fleet::model::{MediaType, MissionId, Mode, ProxyId, SessionId, WorkerId};
use lavra_fleet::settings::Settings;
use lavra_fleet::store::{
    Assigned, Control, Filter, NewMission, NewProxy, NewWorker, Opened, Opening, Store,
};
use lavra_fleet::{DuckDb, MIGRATIONS};
use lavra_tasks::model::ProcessId;

const STALE: Duration = Duration::from_secs(10);

struct Watch(Instant, Vec<(&'static str, Duration, u32)>);

impl Watch {
    fn start(&mut self) {
        self.0 = Instant::now();
    }

    fn stop(&mut self, what: &'static str) {
        let took = self.0.elapsed();
        match self.1.iter_mut().find(|(known, ..)| *known == what) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + took, *count + 1),
            None => self.1.push((what, took, 1)),
        }
    }
}

#[expect(clippy::print_stdout, reason = "for who runs it by hand")]
async fn measure(missions: usize) {
    let directory = tempfile::tempdir().unwrap();
    let target = Target::File(directory.path().join("lavra.duckdb"));
    let database = Database::open(&target, Schema::default(), STALE).await.unwrap();
    let mut migrations = lavra_tasks::MIGRATIONS.to_vec();
    migrations.extend(MIGRATIONS.iter().cloned());
    migrate(&database, &migrations).await.unwrap();
    let Database::Duck(duck) = database else { panic!("no file") };
    let store = DuckDb::new(duck);
    let clock: &Clock = store.clock();
    let mut watch = Watch(Instant::now(), Vec::new());

    let new = (0..missions).map(|_| NewMission {
        id: MissionId::new(clock),
        date_start: date(2025, 1, 1),
        date_end: date(2025, 1, 2),
        media_type: MediaType::All,
        languages: vec!["pt".into()],
    });
    let new: Vec<NewMission> = new.collect();
    watch.start();
    store.add_missions(new, true).await.unwrap();
    watch.stop("add all");
    watch.start();
    let queued = store.wish(&Filter::default(), Wish::Queue, "me").await.unwrap();
    watch.stop("queue all");
    assert_eq!(queued.len(), missions);
    for number in 0..20 {
        let worker = NewWorker {
            id: WorkerId(format!("wrk_{number}")),
            name: format!("w{number}"),
            url: format!("http://w{number}"),
            api_key: "key".into(),
            storage_domain: Some("data".into()),
            active: true,
        };
        store.add_worker(worker).await.unwrap();
        let proxy = NewProxy {
            id: ProxyId(format!("prx_{number}")),
            name: format!("p{number}"),
            host: "proxy".into(),
            port: None,
            username: None,
            password: None,
            active: true,
        };
        store.add_proxy(proxy).await.unwrap();
    }
    store.set_control(Control { mode: Mode::Run, task_id: None }).await.unwrap();
    let process = ProcessId(clock.new_id());
    watch.start();
    let leased = store.lease(process, STALE).await.unwrap();
    watch.stop("first lease");
    let settings = Settings::default();
    let mut batch = Vec::new();
    for (worker, token) in &leased.workers {
        watch.start();
        store.lease(process, STALE).await.unwrap();
        watch.stop("lease");
        let opening = Opening {
            worker: worker.clone(),
            token: *token,
            session: SessionId::new(clock),
            luck: 0,
        };
        watch.start();
        let opened = store.open(opening).await.unwrap();
        watch.stop("open");
        assert!(matches!(opened, Opened::With(_)));
        for (ask, reply) in [
            (Ask::OpenSession, Reply::Done),
            (Ask::SessionStatus, Reply::Session(SessionStatus::Ready)),
        ] {
            watch.start();
            let view = store.view(worker, *token).await.unwrap().unwrap();
            watch.stop("view");
            let step = after(&view, ask, &reply, &settings, clock.now()).unwrap();
            watch.start();
            assert_eq!(store.apply(vec![step]).await.unwrap(), [true]);
            watch.stop("apply a worker");
        }
        watch.start();
        let assigned = store.assign(worker, *token).await.unwrap();
        watch.stop("assign");
        assert!(matches!(assigned, Assigned::Mission(_)));
        watch.start();
        let view = store.view(worker, *token).await.unwrap().unwrap();
        watch.stop("view with mission");
        let reply = Reply::Started { job_id: "job".into() };
        batch.push(after(&view, Ask::StartScrape, &reply, &settings, clock.now()).unwrap());
    }
    watch.start();
    let last = batch.pop().unwrap();
    assert_eq!(store.apply(vec![last]).await.unwrap(), [true]);
    watch.stop("apply a mission");
    watch.start();
    assert!(store.apply(batch).await.unwrap().iter().all(|written| *written));
    watch.stop("apply 19 missions");
    watch.start();
    store.counts().await.unwrap();
    watch.stop("counts");
    watch.start();
    store.missions(&Filter::default(), None, 100).await.unwrap();
    watch.stop("list 100");
    watch.start();
    store
        .wish(&Filter { ids: vec![queued[5].clone()], ..Filter::default() }, Wish::Cancel, "me")
        .await
        .unwrap();
    watch.stop("cancel one");
    watch.start();
    store.wish(&Filter::default(), Wish::Cancel, "me").await.unwrap();
    watch.stop("cancel all");
    for (what, sum, count) in watch.1 {
        println!("{missions:7} missions: {what:20} {:?}", sum / count);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn with_10_000_missions() {
    measure(10_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn with_100_000_missions() {
    measure(100_000).await;
}

mod scratch {
    use super::*;
    use lavra_db::duckdb::Connection;
    use lavra_db::duckdb::types::{TimeUnit, Value};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "a measurement"]
    async fn forms() {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::File(directory.path().join("lavra.duckdb"));
        let database = Database::open(&target, Schema::default(), STALE).await.unwrap();
        let mut migrations = lavra_tasks::MIGRATIONS.to_vec();
        migrations.extend(MIGRATIONS.iter().cloned());
        migrate(&database, &migrations).await.unwrap();
        let Database::Duck(duck) = database else { panic!("no file") };
        duck.write("fill", |tx: &Connection| tx.execute_batch("
INSERT INTO public.missions(id,date_start,date_end,media_type,languages,status,checkpoint,queued_at,created_at) SELECT 'mis_'||lpad(i::VARCHAR,8,'0'),'2025-01-01'::DATE,'2025-01-02'::DATE,'all',['pt','en'],'queued','atribuido',make_timestamp(1700000000000000+i),make_timestamp(1700000000000000+i) FROM range(10000) r(i);
INSERT INTO public.workers(id,name,url,api_key) SELECT 'wrk_'||i,'w'||i,'http://x/'||i,'k' FROM range(20) r(i);
INSERT INTO public.mission_logs(id,mission_id,event,details,timestamp,session_id) SELECT 'log_'||i,'mis_'||i,'mission_queued','{}',make_timestamp(1700000000000000+i),NULL FROM range(100000) r(i);
")).await.unwrap();
        type Form = (
            &'static str,
            Box<dyn Fn(&Connection, i64) -> lavra_db::duckdb::Result<()> + Send + Sync>,
        );
        fn q(name: &'static str, sql: &'static str, params: fn(i64) -> Vec<Value>) -> Form {
            (
                name,
                Box::new(move |tx, i| {
                    let mut s = tx.prepare_cached(sql)?;
                    let mut rows = s.query(lavra_db::duckdb::params_from_iter(params(i)))?;
                    while let Some(row) = rows.next()? {
                        let _: lavra_db::duckdb::types::Value = row.get(0)?;
                    }
                    Ok(())
                }),
            )
        }
        fn none(_: i64) -> Vec<Value> {
            vec![]
        }
        fn mis(i: i64) -> Vec<Value> {
            vec![Value::Text(format!("mis_{i:08}"))]
        }
        fn wrk(i: i64) -> Vec<Value> {
            vec![Value::Text(format!("wrk_{}", i % 20))]
        }
        const Q: &str = "status = 'queued'";
        let _ = Q;
        let forms: Vec<Form> = vec![
            q("select 1", "SELECT 1", none),
            q("mission id only", "SELECT status, token FROM public.missions WHERE id = $1", mis),
            q("mission * ", "SELECT * FROM public.missions WHERE id = $1", mis),
            q(
                "mission to_json",
                "SELECT to_json(r)::VARCHAR FROM public.missions r WHERE r.id = $1",
                mis,
            ),
            q(
                "mission to_json rowid",
                "SELECT to_json(r)::VARCHAR FROM (SELECT * FROM public.missions WHERE id = $1) r",
                mis,
            ),
            q(
                "mission json_object",
                "SELECT json_object('id', id, 'status', status, 'token', token, 'queued_at', queued_at, 'a', writer_id, 'b', writer_job_id, 'c', waiting, 'd', told_at)::VARCHAR FROM public.missions WHERE id = $1",
                mis,
            ),
            q("worker id only", "SELECT status, token FROM public.workers WHERE id = $1", wrk),
            q("worker * ", "SELECT * EXCLUDE (api_key) FROM public.workers WHERE id = $1", wrk),
            q(
                "worker to_json",
                "SELECT to_json(r)::VARCHAR FROM (SELECT * EXCLUDE (api_key) FROM public.workers) r WHERE r.id = $1",
                wrk,
            ),
            q(
                "exists",
                "SELECT 1 FROM public.missions WHERE status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NULL LIMIT 1",
                none,
            ),
            q(
                "exists none",
                "SELECT 1 FROM public.missions WHERE status = 'running' AND queued_at IS NOT NULL AND worker_data_url IS NULL LIMIT 1",
                none,
            ),
            q(
                "first topn",
                "SELECT id FROM public.missions WHERE status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NULL ORDER BY queued_at, id LIMIT 1",
                none,
            ),
            q(
                "first topn one",
                "SELECT id FROM public.missions WHERE status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NULL ORDER BY queued_at LIMIT 1",
                none,
            ),
            q(
                "first arg_min",
                "SELECT arg_min(id, queued_at) FROM public.missions WHERE status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NULL",
                none,
            ),
            q(
                "first arg_min tuple",
                "SELECT arg_min(id, (queued_at, id)) FROM public.missions WHERE status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NULL",
                none,
            ),
            q(
                "first nested",
                "SELECT min(id) FROM public.missions WHERE status = 'queued' AND worker_data_url IS NULL AND queued_at = (SELECT min(queued_at) FROM public.missions WHERE status = 'queued' AND worker_data_url IS NULL)",
                none,
            ),
            q(
                "first min us",
                "SELECT min(queued_at) FROM public.missions WHERE status = 'queued' AND worker_data_url IS NULL",
                none,
            ),
            q(
                "count",
                "SELECT count(*) FROM public.missions WHERE status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NULL",
                none,
            ),
            q(
                "storing",
                "SELECT id, held_by, token FROM public.missions WHERE (status = 'running' AND checkpoint = 'armazenamento') OR (status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NOT NULL) ORDER BY id",
                none,
            ),
            q(
                "storing no order",
                "SELECT id, held_by, token FROM public.missions WHERE (status = 'running' AND checkpoint = 'armazenamento') OR (status = 'queued' AND queued_at IS NOT NULL AND worker_data_url IS NOT NULL)",
                none,
            ),
            q("update worker 1", "UPDATE public.workers SET waiting = $2 WHERE id = $1", |i| {
                vec![wrk(i).remove(0), Value::Text(format!("w{i}"))]
            }),
            q(
                "update worker 5",
                "UPDATE public.workers SET waiting = $2, status = 'ready', updated_at = make_timestamp($3), session_accepted = $4, token = $3 WHERE id = $1",
                |i| {
                    vec![
                        wrk(i).remove(0),
                        Value::Text(format!("w{i}")),
                        Value::BigInt(1700000000000000 + i),
                        Value::Boolean(true),
                    ]
                },
            ),
            q("update mission 1", "UPDATE public.missions SET waiting = $2 WHERE id = $1", |i| {
                vec![mis(i).remove(0), Value::Text(format!("w{i}"))]
            }),
            q(
                "update mission 8",
                "UPDATE public.missions SET waiting = $2, worker_id = $2, worker_job_id = $2, started_at = make_timestamp($3), logged_at = make_timestamp($3), phase_started_at = make_timestamp($3), attempts = 3, token = $3 WHERE id = $1",
                |i| {
                    vec![
                        mis(i).remove(0),
                        Value::Text(format!("w{i}")),
                        Value::BigInt(1700000000000000 + i),
                    ]
                },
            ),
            q(
                "link fn",
                "UPDATE public.mission_logs SET mission_id = $3 WHERE timestamp >= make_timestamp($1) AND session_id = $2 AND mission_id IS NULL",
                |i| {
                    vec![
                        Value::BigInt(1700000000000000 + 100000 + i),
                        Value::Text("s".into()),
                        Value::Text("m".into()),
                    ]
                },
            ),
            q(
                "link cast",
                "UPDATE public.mission_logs SET mission_id = $3 WHERE timestamp >= $1::TIMESTAMPTZ AND session_id = $2 AND mission_id IS NULL",
                |_| {
                    vec![
                        Value::Text("2026-01-01T00:00:00Z".into()),
                        Value::Text("s".into()),
                        Value::Text("m".into()),
                    ]
                },
            ),
            q(
                "link ids select",
                "SELECT rowid FROM public.mission_logs WHERE timestamp >= make_timestamp($1) AND session_id = $2 AND mission_id IS NULL",
                |i| vec![Value::BigInt(1700000000000000 + 100000 + i), Value::Text("s".into())],
            ),
            (
                "append 1",
                Box::new(|tx, i| {
                    let mut a = tx.appender_to_db("mission_logs", "public")?;
                    a.append_row(lavra_db::duckdb::params![
                        format!("log_{i}"),
                        "m",
                        "mission_queued",
                        "{}",
                        Value::Timestamp(TimeUnit::Microsecond, 1700000000000000 + i),
                        "s"
                    ])?;
                    a.flush()
                }),
            ),
            q(
                "insert 1",
                "INSERT INTO public.mission_logs VALUES ($1, 'm', 'mission_queued', '{}', make_timestamp($2), 's')",
                |i| vec![Value::Text(format!("log_{i}")), Value::BigInt(1700000000000000 + i)],
            ),
            q("begin; commit (fsync)", "SELECT 1", none),
        ];
        for (name, form) in forms {
            let form = std::sync::Arc::new(form);
            let f = std::sync::Arc::clone(&form);
            let took = duck
                .write("m", move |tx: &Connection| {
                    f(tx, 0)?;
                    let start = Instant::now();
                    for i in 1..=200 {
                        f(tx, i)?;
                    }
                    Ok(start.elapsed() / 200)
                })
                .await
                .unwrap();
            println!("{name:25} {took:?}");
        }
        let start = Instant::now();
        for i in 0..100_i64 {
            duck.write("m", move |tx: &Connection| {
                tx.execute("UPDATE public.workers SET token = $1 WHERE id = 'wrk_1'", (i,))
                    .map(|_| ())
            })
            .await
            .unwrap();
        }
        println!("write job {:?}", start.elapsed() / 100);
        let start = Instant::now();
        for _ in 0..100_i64 {
            duck.read("m", move |tx: &Connection| tx.execute_batch("SELECT 1")).await.unwrap();
        }
        println!("read job {:?}", start.elapsed() / 100);
    }
}
