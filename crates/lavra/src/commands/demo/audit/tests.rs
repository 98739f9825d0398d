//! A small demonstration is done for real; then it is damaged, a thing at a time.

use jiff::civil::date;
use lavra_db::Database;

use super::*;
use crate::cli::Options;
use crate::commands::demo::bars::Bars;
use crate::commands::demo::end;
use crate::commands::demo::parts::Running;
use crate::commands::demo::place::Place;
use crate::commands::demo::work::Work;
use crate::exit::Exit;
use crate::printer::Printer;

/// What is done to the store, and what must then be found of what.
const DAMAGES: [(&str, Code, &str); 14] = [
    (
        // Hidden as well as one can: the page still has the hash that it is said to have.
        "UPDATE psa.pncp_raw_responses SET response_content =
             replace(response_content, '\"tipoPessoa\":\"PJ\"', '\"tipoPessoa\":\"PF\"')
         WHERE outcome = 'data' AND page = 1;
         UPDATE psa.pncp_pages SET body_hash = (SELECT sha256(response_content)
             FROM psa.pncp_raw_responses WHERE id = response_id) WHERE page = 1",
        Code::Wrong,
        "contratos_publicacao_2025-03-01",
    ),
    (
        "INSERT INTO psa.pncp_raw_responses SELECT * FROM psa.pncp_raw_responses
         WHERE outcome = 'data' AND page = 1",
        Code::Twice,
        "contratos_publicacao_2025-03-01 page 1",
    ),
    (
        "DELETE FROM psa.pncp_raw_responses WHERE page = 2",
        Code::Lost,
        "contratos_publicacao_2025-03-01 page 2",
    ),
    (
        "DELETE FROM psa.pncp_pages WHERE page = 3",
        Code::Lost,
        "contratos_publicacao_2025-03-01 page 3",
    ),
    (
        "UPDATE psa.pncp_extraction_tasks SET status = 'PARTIAL'",
        Code::Unfinished,
        "contratos_publicacao_2025-03-01",
    ),
    (
        "DELETE FROM public.ads WHERE id = (SELECT min(id) FROM public.ads)",
        Code::Lost,
        "public.ads",
    ),
    (
        "UPDATE public.ads SET data = '{}' WHERE id = (SELECT max(id) FROM public.ads)",
        Code::Wrong,
        "public.ads",
    ),
    (
        "UPDATE public.missions SET status = 'failed' WHERE media_type = 'image'",
        Code::Unfinished,
        "mission 2025-03-03 image pt",
    ),
    (
        "INSERT INTO public.mission_logs SELECT * FROM public.mission_logs
         WHERE event = 'mission_completed' AND mission_id =
             (SELECT id FROM public.missions WHERE media_type = 'video')",
        Code::Twice,
        "mission 2025-03-03 video pt",
    ),
    ("UPDATE public.workers SET status = 'ready' WHERE name = 'worker-2'", Code::Held, "worker-2"),
    (
        "UPDATE public.proxies SET in_use_by_worker_id = 'wrk_1' WHERE name = 'proxy-1'",
        Code::Held,
        "proxy-1",
    ),
    (
        "INSERT INTO kodus_workflow.task_dead_letters (id, reason, created_at)
         VALUES ('01a1e14f-b924-7001-8dc0-b29144a15088', 'cannot be read', now())",
        Code::DeadLetter,
        "dead letter 01a1e14f-b924-7001-8dc0-b29144a15088",
    ),
    ("DELETE FROM psa.pncp_extraction_tasks", Code::Lost, "contratos_publicacao_2025-03-01"),
    (
        "INSERT INTO kodus_workflow.task_outbox (id, task_id, type)
         SELECT id, id, type FROM kodus_workflow.tasks LIMIT 1",
        Code::Unfinished,
        "outbox",
    ),
];

async fn damage(database: &Database, sql: &'static str) {
    let Database::Duck(duck) = database else { panic!("not on a file") };
    duck.write("damage", move |connection| connection.execute_batch(sql)).await.unwrap();
}

fn has(audited: &Audited, code: Code, of: &str) -> bool {
    audited.findings.iter().any(|finding| finding.code == code && finding.of == of)
}

/// Work that was stopped before its end: a list without its last pages, and a mission without its ads.
const STOPPED: &str = "UPDATE psa.pncp_extraction_tasks SET status = 'PARTIAL';
    DELETE FROM psa.pncp_raw_responses WHERE page > 1;
    DELETE FROM psa.pncp_pages WHERE page > 1;
    UPDATE public.missions SET status = 'failed' WHERE media_type = 'image';
    DELETE FROM public.mission_logs WHERE event = 'mission_completed' AND mission_id =
        (SELECT id FROM public.missions WHERE media_type = 'image');
    DELETE FROM public.ads WHERE data->>'media_type' = 'image'";

/// A demonstration that is over. Nobody mends what is damaged from here on.
struct Done {
    plan: Plan,
    outside: Outside,
    parts: Parts,
    _scratch: tempfile::TempDir,
}

impl Done {
    async fn well() -> Self {
        let _once = rustls::crypto::ring::default_provider().install_default();
        let plan = Plan {
            scale: 0.008,
            from: "2025-03",
            to: "2025-03",
            endpoints: &["contratos_publicacao"],
            ads: 20,
            days: (date(2025, 3, 3), date(2025, 3, 3)),
            languages: &["pt"],
            ..Plan::default()
        };
        let scratch = tempfile::tempdir().unwrap();
        let (printer, mut running) = (Printer::new(true), Running::default());
        let outside = Outside::begin(&plan).await.unwrap();
        let place = Place::within(scratch.path(), &Options::default(), &outside.ads_url).unwrap();
        let parts = Parts::begin(&place, &outside, &mut running).await.unwrap();
        let work = Work::new(&parts, &outside);
        let order = plan.order(&outside.pncp_url).unwrap();
        work.run(&order, &plan.missions(), &mut Bars::new(&printer)).await.unwrap();
        running.end().await.unwrap();
        Self { plan, outside, parts, _scratch: scratch }
    }

    async fn audit(&self) -> Audited {
        audit(&self.plan, &self.outside, &self.parts).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_damage_is_found() {
    let done = Done::well().await;
    let audited = done.audit().await;
    assert!(audited.findings.is_empty(), "{audited:?}");
    assert_eq!((audited.months, audited.missions), (1, 2));
    assert!(audited.pages >= 3 && audited.records > 1000 && audited.ads > 5, "{audited:?}");
    assert!(matches!(end(&audited), Exit::Done));
    for (sql, code, of) in DAMAGES {
        let before = done.audit().await;
        assert!(!has(&before, code, of), "{code:?} of {of} before {sql}");
        damage(&done.parts.database, sql).await;
        let after = done.audit().await;
        assert!(has(&after, code, of), "no {code:?} of {of} after {sql}: {:?}", after.findings);
        assert!(matches!(end(&after), Exit::Failed(_)));
    }
    done.outside.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_done_yet_is_work_that_remains_and_not_lost() {
    let done = Done::well().await;
    damage(&done.parts.database, STOPPED).await;
    let audited = done.audit().await;
    assert!(has(&audited, Code::Unfinished, "contratos_publicacao_2025-03-01"), "{audited:?}");
    assert!(has(&audited, Code::Unfinished, "mission 2025-03-03 image pt"), "{audited:?}");
    assert!(matches!(end(&audited), Exit::WorkRemains(_)), "{audited:?}");
    done.outside.end().await.unwrap();
}
