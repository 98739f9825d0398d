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

#[expect(clippy::print_stdout, clippy::too_many_lines, reason = "for who runs it by hand")]
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
