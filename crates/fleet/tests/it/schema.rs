//! The PostgreSQL schema: the same from zero and from the specification's older one, with rows in it; and
//! held to the rules of a database linter.

use lavra_db::tokio_postgres::Client;
use lavra_db::{Database, Schema, migrate};
use lavra_fleet::machine::Step;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::model::{EventKind, MissionId, MissionStatus, WorkerStatus};
use lavra_fleet::store::{Assigned, Filter, LogFilter, Opened};
use lavra_testkit::{POSTGRES, Server};

use crate::support::{PATIENCE, World, kinds, migrations, these};

const OLDER: &str = include_str!("../fixtures/older.postgres.sql");

/// The older schema with its rows, migrated.
async fn from_older() -> Server {
    let server = Server::create(POSTGRES, &[]).await;
    server.client().await.batch_execute(OLDER).await.unwrap();
    let database = Database::open(&server.target(), Schema::default(), PATIENCE).await.unwrap();
    let applied = migrate(&database, &migrations()).await.unwrap();
    assert_eq!(applied.last().map(String::as_str), Some("fleet:005"));
    server
}

/// All that the catalog says of our tables, a line each; in which order the columns stand is not
/// told, as it depends on where they came from.
async fn catalog(client: &Client) -> Vec<String> {
    let sql = "
        SELECT format('column %s.%s %s %s %s', c.relname, a.attname,
                      format_type(a.atttypid, a.atttypmod), a.attnotnull,
                      pg_get_expr(d.adbin, d.adrelid))
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S')
          AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL
        SELECT format('constraint %s %s %s %s', conrelid::regclass, conname,
                      pg_get_constraintdef(oid), convalidated)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
        UNION ALL
        SELECT format('word %s %s %s', enumtypid::regtype, enumsortorder, enumlabel) FROM pg_enum
        UNION ALL
        SELECT format('function %s %s %s', oid::regprocedure, proconfig, prosrc) FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace
        UNION ALL
        SELECT format('table %s %s %s', relname, relrowsecurity, reloptions) FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
        ORDER BY 1";
    let rows = client.query_typed(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn from_zero_and_from_the_older_schema_it_is_the_same() {
    let zero = Server::create(POSTGRES, &migrations()).await;
    let older = from_older().await;
    let (zero, older) = (catalog(&zero.client().await).await, catalog(&older.client().await).await);
    let only = |some: &[String], others: &[String]| -> Vec<String> {
        some.iter().filter(|line| !others.contains(line)).cloned().collect()
    };
    assert_eq!(only(&zero, &older), Vec::<String>::new(), "only from zero");
    assert_eq!(only(&older, &zero), Vec::<String>::new(), "only from the older one");
    assert!(zero.len() > 100, "{} lines", zero.len());
}

#[tokio::test]
async fn ads_have_room_to_change_and_a_table_of_the_users_own_is_left_alone() {
    let options = |client: Client| async move {
        let sql = "SELECT coalesce(reloptions::text, 'none') FROM pg_class
                   WHERE oid = 'public.ads'::regclass";
        let rows = client.query_typed(sql, &[]).await.unwrap();
        rows[0].get::<_, String>(0)
    };
    let ours = Server::create(POSTGRES, &migrations()).await;
    assert_eq!(options(ours.client().await).await, "{fillfactor=50}");
    for own in [
        "CREATE TABLE public.ads (id TEXT PRIMARY KEY, price NUMERIC)",
        "CREATE TABLE public.ads (id TEXT PRIMARY KEY, data JSONB, first_seen_at TIMESTAMPTZ,
             last_seen_at TIMESTAMPTZ) WITH (autovacuum_enabled = true)",
    ] {
        let theirs = Server::create(POSTGRES, &[]).await;
        theirs.client().await.batch_execute(own).await.unwrap();
        let before = options(theirs.client().await).await;
        let database = Database::open(&theirs.target(), Schema::default(), PATIENCE).await.unwrap();
        migrate(&database, &migrations()).await.unwrap();
        assert_eq!(options(theirs.client().await).await, before);
    }
}

#[tokio::test]
async fn the_text_can_be_run_again() {
    let server = Server::create(POSTGRES, &migrations()).await;
    let client = server.client().await;
    let before = catalog(&client).await;
    for migration in lavra_fleet::MIGRATIONS {
        client.batch_execute(&migration.postgres).await.unwrap();
    }
    assert_eq!(catalog(&client).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_the_older_schema_stay_and_can_be_worked_on() {
    let world = World::on(from_older().await, true).await;
    let ids: Vec<MissionId> = ["m1", "m2", "m3"].map(MissionId::from).to_vec();
    let second = world.mission(&ids[1]).await;
    assert_eq!(second.worker_job_id.as_deref(), Some("scrape_2"), "job_id has another name");
    assert_eq!((second.retry_count, second.error_code), (0, None), "no word of ours");
    assert_eq!(world.mission(&ids[2]).await.languages, ["pt"]);
    let proxies = world.store.proxies().await.unwrap();
    assert_eq!(proxies.iter().map(|proxy| proxy.active).collect::<Vec<_>>(), [true, false]);
    let log = world.entries(LogFilter::default()).await;
    assert_eq!(log.len(), 2);
    let client = world.pg().client().await.unwrap();
    let kept =
        client.query_typed("SELECT entry FROM lavra.mission_logs_before", &[]).await.unwrap();
    let kept: serde_json::Value = kept[0].get(0);
    assert_eq!(kept["event"], "something_else");

    // One is retried, and all have their turn.
    let again = Wish::Retry { from_scrape: false };
    assert_eq!(world.store.wish(&these(&ids), again, "ana").await.unwrap(), ids[1..2]);
    assert_eq!(world.store.wish(&Filter::default(), Wish::Queue, "ana").await.unwrap(), ids[2..]);
    let process = world.process();
    let lease = world.lease(process).await.workers.remove(0);
    let opened = world.open(&lease, 0).await;
    let Opened::With(proxy) = opened else { panic!("{opened:?}") };
    assert_eq!(proxy.id.0, "p1");
    world.make_ready(&lease).await;
    let assigned = world.store.assign(&lease.0, lease.1).await.unwrap();
    let Assigned::With(view) = assigned else { panic!("{assigned:?}") };
    assert_eq!(view.mission.unwrap().id, ids[0], "the oldest of the queue");

    // To the end, with a value that the type has only since.
    let view = world.view(&lease).await;
    let settings = lavra_fleet::settings::Settings::default();
    let start = lavra_fleet::api::Reply::Started { job_id: "scrape_1".into() };
    let ask = lavra_fleet::machine::worker::Ask::StartScrape;
    let step = lavra_fleet::machine::worker::after(&view, ask, &start, &settings, world.now());
    assert!(world.applied(step.unwrap()).await);
    let view = world.view(&lease).await;
    let empty = lavra_fleet::api::Reply::Job {
        job: lavra_fleet::api::JobReport {
            status: lavra_fleet::api::JobStatus::Empty,
            ads_count: None,
            progress_pct: None,
            error_code: None,
            blame: None,
            message: None,
        },
        session: None,
    };
    let ask = lavra_fleet::machine::worker::Ask::Job;
    let step = lavra_fleet::machine::worker::after(&view, ask, &empty, &settings, world.now());
    assert!(world.applied(step.unwrap()).await);
    let mission = world.mission(&ids[0]).await;
    assert_eq!(mission.status, MissionStatus::Completed);
    assert_eq!(mission.checkpoint.unwrap().as_str(), "finalizado");
    assert_eq!(world.view(&lease).await.worker.status, WorkerStatus::Ready);
    let expected = [
        "mission_queued",
        "session_started",
        "mission_assigned",
        "scrape_started",
        "scrape_empty",
        "mission_completed",
    ];
    assert_eq!(kinds(&world.log_of(&ids[0]).await), expected);
}

#[tokio::test]
async fn the_references_hold_where_old_rows_break_them() {
    let server = Server::create(POSTGRES, &[]).await;
    let client = server.client().await;
    client.batch_execute(OLDER).await.unwrap();
    client
        .batch_execute(
            "ALTER TABLE public.missions DROP CONSTRAINT missions_worker_id_fkey;
             UPDATE public.missions SET worker_id = 'gone' WHERE id = 'm2';",
        )
        .await
        .unwrap();
    let database = Database::open(&server.target(), Schema::default(), PATIENCE).await.unwrap();
    migrate(&database, &migrations()).await.unwrap();
    let bad = "UPDATE public.missions SET worker_id = 'nobody' WHERE id = 'm1'";
    assert!(client.batch_execute(bad).await.is_err());
}

#[tokio::test]
async fn a_log_without_events_and_no_log_at_all_are_both_known() {
    for change in
        ["ALTER TABLE public.mission_logs DROP COLUMN event", "DROP TABLE public.mission_logs"]
    {
        let server = Server::create(POSTGRES, &[]).await;
        let client = server.client().await;
        client.batch_execute(OLDER).await.unwrap();
        client.batch_execute(change).await.unwrap();
        let world = {
            let target = server.target();
            let database = Database::open(&target, Schema::default(), PATIENCE).await.unwrap();
            migrate(&database, &migrations()).await.unwrap();
            World::on(server, true).await
        };
        world.queue(1).await;
        let log = world.entries(LogFilter::default()).await;
        assert_eq!(log.len(), 1, "after {change}");
        assert_eq!(log[0].event, EventKind::MissionQueued);
    }
}

#[tokio::test]
async fn a_table_of_the_user_s_own_is_left_as_it_is() {
    let server = Server::create(POSTGRES, &[]).await;
    let client = server.client().await;
    client
        .batch_execute("CREATE TABLE public.ads (id BIGINT PRIMARY KEY, title TEXT)")
        .await
        .unwrap();
    let database = Database::open(&server.target(), Schema::default(), PATIENCE).await.unwrap();
    migrate(&database, &migrations()).await.unwrap();
    client.batch_execute("INSERT INTO public.ads VALUES (1, 'mine')").await.unwrap();
}

#[tokio::test]
async fn ids_of_the_database_look_like_ours_and_sort_by_time() {
    let server = Server::create(POSTGRES, &migrations()).await;
    let client = server.client().await;
    let functions = [
        ("mission", "mis_"),
        ("worker", "wrk_"),
        ("proxy", "prx_"),
        ("writer", "wrt_"),
        ("mission_log", "log_"),
    ];
    for (name, prefix) in functions {
        let sql = format!("SELECT public.generate_{name}_id() FROM pg_sleep(0.002)");
        let mut ids: Vec<String> = Vec::new();
        for _ in 0..3 {
            ids.push(client.query_typed(&sql, &[]).await.unwrap()[0].get(0));
        }
        assert!(ids.is_sorted(), "{ids:?}");
        for id in ids {
            let digits = id.strip_prefix(prefix).unwrap();
            let id = uuid::Uuid::try_parse(digits).unwrap();
            assert_eq!((digits.len(), id.get_version_num()), (32, 7));
        }
    }
}

#[tokio::test]
async fn the_schema_breaks_no_rule_of_a_linter() {
    let server = Server::create(POSTGRES, &migrations()).await;
    let client = server.client().await;
    let rules = [
        "SELECT 'no primary key: ' || c.relname FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND NOT EXISTS (
             SELECT 1 FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p')",
        "SELECT 'no row level security: ' || relname FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND NOT relrowsecurity",
        "SELECT 'search_path of its caller: ' || proname FROM pg_proc
         WHERE pronamespace = 'public'::regnamespace AND NOT EXISTS (
             SELECT 1 FROM unnest(proconfig) s WHERE s LIKE 'search_path=%')",
        "SELECT 'an index twice: ' || string_agg(i.indexrelid::regclass::text, ' ')
         FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
         WHERE c.relnamespace = 'public'::regnamespace
         GROUP BY i.indrelid, i.indkey::text, i.indoption::text, pg_get_expr(i.indpred, i.indrelid)
         HAVING count(*) > 1",
    ];
    for rule in rules {
        let found = client.query_typed(rule, &[]).await.unwrap();
        let found: Vec<String> = found.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_are_queued_in_seconds() {
    let world = World::on_postgres().await;
    fill(&world, 100_000, "NULL").await;
    let start = std::time::Instant::now();
    let done = world.store.wish(&Filter::default(), Wish::Queue, "ana").await.unwrap();
    let took = start.elapsed();
    assert_eq!(done.len(), 100_000);
    assert!(took < std::time::Duration::from_secs(60), "{took:?}");
    assert_eq!(world.store.counts().await.unwrap().queued, 100_000);
    assert!(world.applied(Step::default()).await);
}

/// So many missions, with `queued_at` as this SQL says; in slices, as tests beside this one wait for
/// transactions that are open.
pub(crate) async fn fill(world: &World, count: usize, queued_at: &str) {
    const SLICE: usize = 50_000;
    let client = world.pg().client().await.unwrap();
    for first in (1..=count).step_by(SLICE) {
        let last = count.min(first + SLICE - 1);
        let sql = format!(
            "INSERT INTO public.missions (id, date_start, date_end, media_type, languages, queued_at)
             SELECT 'mis_' || lpad(to_hex(n), 32, '0'), '2025-01-01', '2025-01-31', 'all', '{{pt}}',
                    {queued_at}
             FROM generate_series({first}, {last}) AS n"
        );
        client.batch_execute(&sql).await.unwrap();
    }
    client.batch_execute("ANALYZE public.missions").await.unwrap();
}
