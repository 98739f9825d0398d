//! How much is stored, as people are told it, and as the pages have it.

use lavra_extract::model::Extraction;
use lavra_extract::store::{Arrival, Volume, Write, Written};
use lavra_testkit::on_each_engine;

use crate::support::{World, scope};

on_each_engine!(sums_are_those_of_the_pages_however_they_come_and_go);

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
