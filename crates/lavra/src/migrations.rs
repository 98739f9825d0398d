//! The tables of a database of lavra: one list, for all who make them or look whether they are there.

use lavra_db::{Database, IDEMPOTENCY, Migration, migrate, unapplied};

/// All but those of the sources. A process makes also what only another one uses, the writer's for one, so
/// that a database has the same tables whoever opened it first. (A writer whose target is another database
/// than lavra's has only its own there.)
pub(crate) fn all() -> Vec<Migration> {
    [
        lavra_tasks::MIGRATIONS,
        lavra_fleet::MIGRATIONS,
        lavra_notify::MIGRATIONS,
        lavra_web::MIGRATIONS,
        lavra_writer::MIGRATIONS,
        &[IDEMPOTENCY],
    ]
    .concat()
}

/// Brings a database up to date, with the tables of all sources that it has and those of `own`, and says what
/// was missing.
pub(crate) async fn apply(database: &Database, own: &[Migration]) -> anyhow::Result<Vec<String>> {
    let mut applied = migrate(database, &[&all(), own].concat()).await?;
    let of_sources = of_other_sources(database, own).await?;
    if !of_sources.is_empty() {
        applied.extend(migrate(database, &of_sources).await?);
    }
    Ok(applied)
}

/// What [`apply`] would do, without doing it.
pub(crate) async fn missing(database: &Database) -> anyhow::Result<Vec<String>> {
    let migrations = [all(), of_other_sources(database, &[]).await?].concat();
    Ok(unapplied(database, &migrations).await?)
}

async fn of_other_sources(
    database: &Database,
    own: &[Migration],
) -> lavra_extract::Result<Vec<Migration>> {
    let mut here = lavra_extract::migrations_here(database).await?;
    here.retain(|migration| own.iter().all(|done| done.id != migration.id));
    Ok(here)
}
