//! What can be done with what was extracted: audit, repair, retry, views and exports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use lavra_db::Database;
use lavra_extract::audit::{Against, Audit, Problem, Report};
use lavra_extract::client::Fetch;
use lavra_extract::export::{self, Export, Format};
use lavra_extract::host::Host;
use lavra_extract::model::Status;
use lavra_extract::reading::{Reply, Trouble};
use lavra_extract::source::Source;
use lavra_extract::views;
use lavra_tasks::Artefacts;
use lavra_testkit::on_each_engine;
use tokio_util::sync::CancellationToken;

use crate::paper::{Fault, Paper, reply};
use crate::runs::{extractor, quiet, source, whole};
use crate::support::{World, scope};

on_each_engine!(
    an_audit_of_what_is_well_finds_nothing,
    each_damage_is_found_and_what_is_repaired_is_well_after_the_next_run,
    what_is_not_complete_is_told,
    against_the_source_what_has_moved_is_told,
    a_retry_takes_up_what_failed_and_plans_nothing,
    a_view_has_one_row_for_each_record,
    a_view_is_made_anew_when_the_source_says_otherwise,
    values_that_are_something_else_are_null_and_break_no_view,
    exports_have_each_record_once_as_it_came,
    what_is_not_complete_is_left_out_of_an_export,
    a_file_of_several_lists_is_left_as_it_was_while_one_of_them_is_not_complete,
    pages_of_another_size_are_no_damage,
    a_zero_in_a_text_breaks_neither_the_view_nor_an_export,
    a_page_without_its_body_is_no_part_of_an_export_and_ends_it,
    what_another_process_took_meanwhile_is_not_repaired,
);

async fn filled(world: &World) -> Arc<Paper> {
    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20240101", 35);
    paper.set("20240201", 7);
    let ran = whole(world, &paper).await;
    assert_eq!(ran.summary.complete, 2, "{:?}", ran.summary);
    paper
}

fn audit(world: &World, against: Option<&Arc<Paper>>, repair: bool) -> Audit {
    let source = source();
    let host = Host::new(source.limits.in_flight, lavra_extract::breaker::Settings::default());
    Audit {
        store: Arc::clone(&world.store),
        source: Arc::new(source),
        stop: CancellationToken::new(),
        against: against.map(|paper| Against { client: Arc::clone(paper) as _, host }),
        repair,
    }
}

async fn audited(world: &World, against: Option<&Arc<Paper>>, repair: bool) -> Report {
    audit(world, against, repair).run(&scope(), |_, _| {}).await.unwrap()
}

async fn an_audit_of_what_is_well_finds_nothing(world: World) {
    filled(&world).await;
    let report = audited(&world, None, false).await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.tasks, report.complete, report.pages, report.records), (2, 2, 5, 42));
    assert_eq!((report.repeated, report.asked), (0, 0));
    assert!(report.bytes > 0);
}

async fn each_damage_is_found_and_what_is_repaired_is_well_after_the_next_run(world: World) {
    let paper = filled(&world).await;
    world
        .meddle(
            "UPDATE psa.pncp_raw_responses SET response_content = '{\"data\":[]}'
             WHERE page = 2;
             DELETE FROM psa.pncp_raw_responses WHERE page = 3;
             DELETE FROM psa.pncp_pages WHERE page = 4",
        )
        .await;
    let report = audited(&world, None, false).await;
    let mut found: Vec<_> = report.findings.iter().map(|f| (f.page.unwrap(), f.problem)).collect();
    found.sort_unstable();
    let expected =
        [(2, Problem::BodyChanged), (3, Problem::BodyMissing), (4, Problem::PageMissing)];
    assert_eq!(found, expected, "{report:?}");
    assert!(report.is_damaged() && report.repaired == 0);

    let repaired = audited(&world, None, true).await;
    assert_eq!(repaired.repaired, 1, "{repaired:?}");
    assert_eq!(world.task(1).await.status, Status::Pending);
    assert_eq!(world.task(2).await.status, Status::Complete, "it was well");
    whole(&world, &paper).await;
    let report = audited(&world, None, false).await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.pages, report.records), (5, 42));
}

async fn pages_of_another_size_are_no_damage(world: World) {
    filled(&world).await;
    for size in [4, 9, 50] {
        let mut audit = audit(&world, None, false);
        let mut source = source();
        source.endpoints.iter_mut().for_each(|endpoint| endpoint.page_size = size);
        audit.source = Arc::new(source);
        let report = audit.run(&scope(), |_, _| {}).await.unwrap();
        assert_eq!((report.pages, report.findings.len()), (5, 0), "{size}: {report:?}");
    }
}

async fn what_is_not_complete_is_told(world: World) {
    world.plan(1).await;
    let report = audited(&world, None, false).await;
    assert_eq!(report.problems, BTreeMap::from([(Problem::NotComplete, 1)]));
    assert_eq!(report.findings[0].detail, "PENDING");
    assert!(!report.is_damaged());
}

async fn against_the_source_what_has_moved_is_told(world: World) {
    let paper = filled(&world).await;
    let report = audited(&world, Some(&paper), false).await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.asked, 2);

    paper.set("20240201", 9);
    let report = audited(&world, Some(&paper), false).await;
    assert_eq!(report.problems, BTreeMap::from([(Problem::Moved, 1)]));
    let detail = &report.findings[0].detail;
    assert_eq!(detail, "2024-02-01 to 2024-02-29: 7 were announced, 9 now");

    let refusing: Fault = Box::new(|_, _| Some(Ok(reply(400, r#"{"message":"no"}"#))));
    let report = audited(&world, Some(&Arc::new(Paper::new(refusing))), false).await;
    assert_eq!(report.problems, BTreeMap::from([(Problem::NotAsked, 2)]), "{report:?}");
}

async fn a_retry_takes_up_what_failed_and_plans_nothing(world: World) {
    let refusing: Fault = Box::new(|_, _| Some(Ok(reply(400, r#"{"message":"no"}"#))));
    let ran = whole(&world, &Arc::new(Paper::new(refusing))).await;
    assert_eq!(ran.summary.failed, 2, "{:?}", ran.summary);

    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20240101", 35);
    let ran = whole(&world, &paper).await;
    assert_eq!((ran.summary.failed, paper.requests()), (2, 0), "it waits for a day");

    let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    let summary = extractor.retry(scope()).await.unwrap();
    assert_eq!((summary.complete, summary.failed, summary.records), (2, 0, 35), "{summary:?}");
    assert_eq!(world.ask("SELECT count(*) FROM psa.pncp_extraction_tasks").await, "2");
}

async fn a_view_has_one_row_for_each_record(world: World) {
    filled(&world).await;
    views::ensure(world.database(), &source()).await.unwrap();
    let ask = async |sql| world.ask(sql).await;
    assert_eq!(ask("SELECT count(*) FROM psa.pncp_contratos_publicacao").await, "42");
    let keys = "SELECT count(DISTINCT numeroControlePNCP) FROM psa.pncp_contratos_publicacao
                WHERE data_date = DATE '2024-01-01'";
    assert_eq!(ask(keys).await, "35");
    let last = "SELECT max(page * 100 + position) FROM psa.pncp_contratos_publicacao
                WHERE task_id = 'contratos_publicacao_2024-01-01'";
    assert_eq!(ask(last).await, "405", "page 4 has five");
    // What a page had before, and pages past the end, are no rows.
    world
        .meddle(
            "UPDATE psa.pncp_extraction_windows SET total_pages = 3
             WHERE task_id = 'contratos_publicacao_2024-01-01'",
        )
        .await;
    assert_eq!(ask("SELECT count(*) FROM psa.pncp_contratos_publicacao").await, "37");
    assert_eq!(ask("SELECT count(*) FROM psa.pncp_contratacoes_publicacao").await, "0");
    assert_eq!(ask("SELECT count(*) FROM psa.pncp_pca_atualizacao").await, "0");
}

async fn a_view_is_made_anew_when_the_source_says_otherwise(world: World) {
    views::ensure(world.database(), &source()).await.unwrap();
    views::ensure(world.database(), &source()).await.unwrap();
    let text = source().text.replace("{ name = \"niFornecedor\" },", "{ name = \"novo\" },");
    let other = Source::parse(&text).unwrap();
    views::ensure(world.database(), &other).await.unwrap();
    let columns = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'psa'
                   AND table_name = 'pncp_contratos_publicacao' AND column_name = 'novo'";
    assert_eq!(world.ask(columns).await, "1");
}

async fn values_that_are_something_else_are_null_and_break_no_view(world: World) {
    filled(&world).await;
    views::ensure(world.database(), &source()).await.unwrap();
    world
        .meddle(
            r#"UPDATE psa.pncp_raw_responses SET response_content =
            '{"data":[
            {"valorGlobal":30000.0000,"anoContrato":2024,"dataAssinatura":"2024-02-29",
             "dataAtualizacao":"2024-02-29T23:59:59","receita":true,"orgaoEntidade":{"cnpj":"a''b"}},
            {"valorGlobal":"4.920,00","anoContrato":"x","dataAssinatura":"29/02/2024",
             "dataAtualizacao":"soon","receita":"maybe","orgaoEntidade":[]},
            {"valorGlobal":{},"anoContrato":99999999999999999999,"dataAssinatura":"0000-00-00",
             "dataAtualizacao":"2024-99-99T99:99:99","receita":null,"orgaoEntidade":null},
            7]}' WHERE task_id = 'contratos_publicacao_2024-02-01'"#,
        )
        .await;
    let of = "FROM psa.pncp_contratos_publicacao WHERE data_date = DATE '2024-02-01'";
    let ask = async |what: &str| {
        let sql: &'static str = format!("SELECT {what} {of}").leak();
        world.ask(sql).await
    };
    assert_eq!(ask("count(*)").await, "4");
    assert_eq!(ask("sum(valorGlobal)").await, "30000.0000");
    assert_eq!(ask("sum(anoContrato)").await, "2024");
    assert_eq!(ask("max(dataAssinatura)").await, "2024-02-29");
    assert_eq!(ask("max(dataAtualizacao)").await, "2024-02-29 23:59:59");
    assert_eq!(ask("count(receita)").await, "1");
    assert_eq!(ask("max(orgaoCnpj)").await, "a'b");
}

async fn exported(world: &World, out: &Path, format: Format, partial: bool) -> export::Report {
    export(world, out, format, partial).await.unwrap()
}

async fn export(
    world: &World,
    out: &Path,
    format: Format,
    partial: bool,
) -> lavra_extract::Result<export::Report> {
    let export = Export {
        store: Arc::clone(&world.store),
        source: Arc::new(source()),
        to: Artefacts::open(&out.display().to_string()).unwrap(),
        format,
        partial,
        stop: CancellationToken::new(),
    };
    export.run(&scope(), |_, _| {}).await
}

async fn exports_have_each_record_once_as_it_came(world: World) {
    let paper = filled(&world).await;
    let out = tempfile::tempdir().unwrap();
    for format in [Format::JsonLines, Format::Csv, Format::Parquet] {
        let report = exported(&world, out.path(), format, false).await;
        assert_eq!((report.rows, report.files.len()), (42, 2), "{report:?}");
        assert!(report.left_out.is_empty());
    }
    let lines =
        out.path().join("contratos_publicacao/month=2024-01/contratos_publicacao-2024-01.jsonl");
    let text = std::fs::read_to_string(&lines).unwrap();
    let lines_: Vec<&str> = text.lines().collect();
    let expected: Vec<String> =
        (0..35).map(|n| format!("{{\"numeroControlePNCP\":{n}}}")).collect();
    assert_eq!(lines_, expected, "in the order of the pages");

    let connection = lavra_db::duckdb::Connection::open_in_memory().unwrap();
    for extension in ["csv", "parquet"] {
        let sql = format!(
            "SELECT count(*), count(DISTINCT numeroControlePNCP), min(month), max(month),
                    max(page * 100 + position)
             FROM '{}/contratos_publicacao/*/*.{extension}'",
            out.path().display()
        );
        let row: (i64, i64, String, String, i64) = connection
            .query_row(&sql, [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })
            .unwrap();
        assert_eq!(row, (42, 35, "2024-01".into(), "2024-02".into(), 405), "{extension}");
    }

    // A month that has nothing any more has no file any more.
    paper.set("20240101", 0);
    let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    let wanted = lavra_extract::plan::Wanted {
        from: "2024-01".parse().unwrap(),
        to: "2024-02".parse().unwrap(),
        endpoints: vec!["contratos_publicacao".into()],
    };
    extractor.run(&wanted, true).await.unwrap();
    let report = exported(&world, out.path(), Format::JsonLines, false).await;
    assert_eq!((report.rows, report.files.len()), (7, 1));
    assert!(!lines.exists());
}

async fn what_is_not_complete_is_left_out_of_an_export(world: World) {
    filled(&world).await;
    world
        .meddle(
            "UPDATE psa.pncp_extraction_tasks SET status = 'PARTIAL'
             WHERE task_id = 'contratos_publicacao_2024-02-01'",
        )
        .await;
    let out = tempfile::tempdir().unwrap();
    let report = exported(&world, out.path(), Format::JsonLines, false).await;
    assert_eq!((report.rows, report.left_out.len()), (35, 1));
    assert_eq!(report.left_out[0].status, Status::Partial);
    let report = exported(&world, out.path(), Format::JsonLines, true).await;
    assert_eq!((report.rows, report.left_out.len()), (42, 0));
}

async fn a_file_of_several_lists_is_left_as_it_was_while_one_of_them_is_not_complete(world: World) {
    let paper = Arc::new(Paper::new(quiet()));
    paper.set("20240101", 3);
    let wanted = lavra_extract::plan::Wanted {
        from: "2024-01".parse().unwrap(),
        to: "2024-01".parse().unwrap(),
        endpoints: vec!["contratacoes_publicacao".into()],
    };
    let (extractor, _heard) = extractor(&world, &paper, CancellationToken::new()).await;
    let lists = extractor.run(&wanted, false).await.unwrap().complete as u64;
    assert!(lists > 1);
    let out = tempfile::tempdir().unwrap();
    let export = |world: &World| Export {
        store: Arc::clone(&world.store),
        source: Arc::new(source()),
        to: Artefacts::open(&out.path().display().to_string()).unwrap(),
        format: Format::JsonLines,
        partial: false,
        stop: CancellationToken::new(),
    };
    let all = lavra_extract::store::Scope { endpoints: Vec::new(), ..scope() };
    let whole = export(&world).run(&all, |_, _| {}).await.unwrap();
    assert_eq!((whole.rows, whole.files.len()), (3 * lists, 1), "{whole:?}");
    world
        .meddle(
            "UPDATE psa.pncp_extraction_tasks SET status = 'PARTIAL'
             WHERE task_id = 'contratacoes_publicacao_modalidade_6_2024-01-01'",
        )
        .await;
    let report = export(&world).run(&all, |_, _| {}).await.unwrap();
    assert_eq!((report.files.len(), report.left_out.len()), (0, 1), "{report:?}");
    let file = std::fs::read_to_string(out.path().join(&whole.files[0].key)).unwrap();
    assert_eq!(file.lines().count() as u64, whole.rows);
}

/// JSON may hold a zero byte, as `\u0000`; a text of PostgreSQL may not.
async fn a_zero_in_a_text_breaks_neither_the_view_nor_an_export(world: World) {
    filled(&world).await;
    views::ensure(world.database(), &source()).await.unwrap();
    let lines = [
        r#"{"numeroControlePNCP":"a\u0000b\\\u0000","orgaoEntidade":{"cnpj":"\u0000\u0000"}}"#,
        r#"{"numeroControlePNCP":"c\\u0000d","usuarioNome":"\u0041"}"#,
        r#"{"numeroControlePNCP":"as usual"}"#,
    ];
    let sql = format!(
        "UPDATE psa.pncp_raw_responses SET response_content = '{{\"data\":[{}]}}'
         WHERE task_id = 'contratos_publicacao_2024-02-01'",
        lines.join(",")
    );
    world.meddle(sql.leak()).await;
    let of = "FROM psa.pncp_contratos_publicacao WHERE data_date = DATE '2024-02-01'";
    let ask = async |what: &str| {
        let sql: &'static str = format!("SELECT {what} {of}").leak();
        world.ask(sql).await
    };
    assert_eq!(ask("count(*)").await, "3");
    let zero = match world.database() {
        Database::Duck(_) => '\0',
        Database::Postgres(_) => '\u{FFFD}',
    };
    let names = format!("as usual|a{zero}b\\{zero}|c\\u0000d");
    assert_eq!(ask("string_agg(numeroControlePNCP, '|' ORDER BY position % 3)").await, names);
    assert_eq!(ask("max(orgaoCnpj)").await, format!("{zero}{zero}"));
    let all = "SELECT count(DISTINCT numeroControlePNCP) FROM psa.pncp_contratos_publicacao";
    assert_eq!(world.ask(all).await, "38", "those of January are not concerned");

    let out = tempfile::tempdir().unwrap();
    for format in [Format::JsonLines, Format::Csv, Format::Parquet] {
        assert_eq!(exported(&world, out.path(), format, false).await.rows, 38);
    }
    let month = out.path().join("contratos_publicacao/month=2024-02");
    let file = month.join("contratos_publicacao-2024-02");
    let text = std::fs::read_to_string(file.with_extension("jsonl")).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), lines, "as they came");
    let connection = lavra_db::duckdb::Connection::open_in_memory().unwrap();
    for extension in ["csv", "parquet"] {
        let sql = format!(
            "SELECT string_agg(numeroControlePNCP, '|' ORDER BY position % 3) FROM '{}.{extension}'",
            file.display()
        );
        let found: String = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(found, "as usual|a\0b\\\0|c\\u0000d", "{extension}");
    }
}

async fn a_page_without_its_body_is_no_part_of_an_export_and_ends_it(world: World) {
    filled(&world).await;
    let out = tempfile::tempdir().unwrap();
    for gone in [
        "UPDATE psa.pncp_raw_responses SET response_content = NULL WHERE page = 3",
        "DELETE FROM psa.pncp_raw_responses WHERE page = 3",
    ] {
        world.meddle(gone).await;
        for format in [Format::JsonLines, Format::Parquet] {
            let error = export(&world, out.path(), format, false).await.unwrap_err().to_string();
            assert!(error.contains("page 3 of contratos_publicacao_2024-01-01"), "{error}");
            assert!(error.contains("`lavra extract audit pncp --repair`"), "{error}");
        }
    }
    let january = out.path().join("contratos_publicacao/month=2024-01");
    assert!(!january.exists(), "a file with records missing");
}

/// Answers, after another process has taken every task.
struct Taken(World);

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Taken")
    }
}

#[async_trait]
impl Fetch for Taken {
    async fn fetch(&self, _url: &url::Url) -> Result<Reply, Trouble> {
        self.0.meddle("UPDATE psa.pncp_extraction_tasks SET token = token + 1").await;
        Ok(reply(200, r#"{"data":[{}],"totalRegistros":35}"#))
    }
}

async fn what_another_process_took_meanwhile_is_not_repaired(world: World) {
    filled(&world).await;
    world.meddle("DELETE FROM psa.pncp_raw_responses WHERE page = 3").await;
    let mut audit = audit(&world, None, true);
    let host = Host::new(1, lavra_extract::breaker::Settings::default());
    let taken = Arc::new(Taken(world));
    audit.against = Some(Against { client: Arc::clone(&taken) as _, host });
    let report = audit.run(&scope(), |_, _| {}).await.unwrap();
    // However often it is looked at, somebody has it meanwhile: nothing can be said of it.
    assert_eq!(report.problems, BTreeMap::from([(Problem::NotComplete, 2)]), "{report:?}");
    assert_eq!(report.repaired, 0);
    assert_eq!(taken.0.task(1).await.status, Status::Complete, "it is the other's");
}
