//! The tables of a source.

use lavra_db::Migration;

/// The migrations of a source's own tables, as a series of its own. The name must be a source's,
/// which is checked to be no more than letters, digits and underscores.
pub fn migrations(source: &str) -> Vec<Migration> {
    // Names of constraints are unique in a schema; the specification's is that of the portal's table.
    let unique =
        if source == "pncp" { "unique_task".into() } else { format!("unique_{source}_task") };
    let fill = |sql: &str| sql.replace("{source}", source).replace("{unique_task}", &unique).into();
    vec![
        Migration {
            id: format!("{source}:001").into(),
            description: format!("the plan, pages and responses of {source}").into(),
            postgres: fill(include_str!("../migrations/001.postgres.sql")),
            duckdb: fill(include_str!("../migrations/001.duckdb.sql")),
        },
        Migration {
            id: format!("{source}:002").into(),
            description: format!("an index of the failures of {source}").into(),
            postgres: fill(include_str!("../migrations/002.postgres.sql")),
            duckdb: fill(include_str!("../migrations/002.duckdb.sql")),
        },
        Migration {
            id: format!("{source}:003").into(),
            description: format!("how much of each task of {source} is stored").into(),
            postgres: fill(include_str!("../migrations/003.postgres.sql")),
            duckdb: fill(include_str!("../migrations/003.duckdb.sql")),
        },
    ]
}
