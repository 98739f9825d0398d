//! How much is stored, as people are told it, and as the pages have it.

use lavra_extract::model::Extraction;
use lavra_extract::store::{Arrival, Volume, Write, Written};
use lavra_testkit::on_each_engine;

use crate::support::{World, scope};

on_each_engine!(
    sums_are_those_of_the_pages_however_they_come_and_go,
    the_plan_has_the_columns_that_everyone_knows,
    the_responses_have_the_columns_that_everyone_knows,
);

async fn store(world: &World, task: &Extraction, arrivals: Vec<Arrival>) {
    let (id, token) = (task.task_id.clone(), task.token);
    let write = Write { task: id, token, change: None, arrivals };
    assert_eq!(world.write(write).await, Written::Applied { token });
}

const COUNTED: &str =
    "SELECT concat(count(*), ' ', sum(records), ' ', sum(bytes)) FROM psa.pncp_pages";

/// On PostgreSQL the tasks know it, and nobody counts.
async fn sums_are_those_of_the_pages_however_they_come_and_go(world: World) {
    let task = world.fetching(world.process().await).await;
    let agrees = async |what: &str| {
        let Volume { pages, records, bytes } = world.store.volume().await.unwrap();
        let counted = world.ask(COUNTED).await;
        assert_eq!(format!("{pages} {records} {bytes}"), counted, "{what}");
        let progress = world.store.progress(&scope()).await.unwrap().remove(0);
        assert_eq!((progress.pages, progress.records, progress.bytes), (pages, records, bytes));
        let grid = world.store.grid(&scope()).await.unwrap();
        assert_eq!((grid[0].pages, grid[0].records), (pages, records), "{what}");
    };
    let [two, three] = [world.arrival(2, "two", 10), world.arrival(3, "three", 5)];
    store(&world, &task, vec![two, three]).await;
    agrees("two more pages").await;
    let [other, four] = [world.arrival(2, "two, and longer", 7), world.arrival(4, "four", 1)];
    store(&world, &task, vec![other, four]).await;
    agrees("one otherwise, one more").await;
    world.store.distrust(&task.task_id, vec![2, 3]).await.unwrap();
    store(&world, &task, vec![world.arrival(3, "three", 5)]).await;
    agrees("distrusted, and there again").await;
    world.meddle("DELETE FROM psa.pncp_pages WHERE page > 2").await;
    agrees("some are gone").await;
    world.meddle("UPDATE psa.pncp_pages SET records = records + 1, bytes = bytes * 2").await;
    agrees("changed by hand").await;
}

/// What people write queries against: name, type, and whether there may be nothing.
const PLAN: &str = "task_id varchar NO, endpoint_name varchar NO, data_date date NO, \
    status varchar NO, total_pages integer YES, total_records integer YES, missing_pages json YES, \
    last_error varchar YES, created_at timestamp with time zone YES, \
    updated_at timestamp with time zone YES";

async fn the_plan_has_the_columns_that_everyone_knows(world: World) {
    let columns = "SELECT string_agg(concat(column_name, ' ',
                       regexp_replace(lower(data_type), '^(character varying|text)$', 'varchar'), ' ',
                       is_nullable), ', ' ORDER BY ordinal_position)
                   FROM information_schema.columns
                   WHERE table_schema = 'psa' AND table_name = 'pncp_extraction_tasks'
                     AND ordinal_position <= 10";
    assert_eq!(world.ask(columns).await, PLAN);
    let plan = "INSERT INTO psa.pncp_extraction_tasks (task_id, endpoint_name, data_date)
                VALUES ('a', 'x', '2024-01-01'), ('b', 'x', '2024-01-01'), ('a', 'x', '2024-02-01')
                ON CONFLICT DO NOTHING";
    world.meddle(plan).await;
    let planned =
        "SELECT string_agg(concat(status, ' ', data_date), ', ') FROM psa.pncp_extraction_tasks
                   WHERE created_at IS NOT NULL AND updated_at IS NOT NULL";
    assert_eq!(world.ask(planned).await, "PENDING 2024-01-01");
    for status in ["DISCOVERING", "FETCHING", "PARTIAL", "COMPLETE", "FAILED"] {
        let change = format!("UPDATE psa.pncp_extraction_tasks SET status = '{status}'");
        world.meddle(change.leak()).await;
    }
}

const RESPONSES: &str = "id, extracted_at, endpoint_url, endpoint_name, request_parameters, response_code, \
    response_content, response_headers, data_date, run_id, total_records, total_pages, current_page, page_size";

/// Ours come after them.
async fn the_responses_have_the_columns_that_everyone_knows(world: World) {
    let columns = "SELECT string_agg(column_name, ', ' ORDER BY ordinal_position)
                   FROM information_schema.columns
                   WHERE table_schema = 'psa' AND table_name = 'pncp_raw_responses'
                     AND ordinal_position <= 14";
    assert_eq!(world.ask(columns).await, RESPONSES);
}
