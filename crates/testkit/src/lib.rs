#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what is absent here fails the test")]

mod engine;
mod server;

pub use server::{PGBOUNCER, POSTGRES, Server};

/// Waits until a listener on this database has proved that its connections are sessions, as it has
/// in a process that runs: only then are statements prepared and rows copied.
pub async fn prove_sessions(database: &lavra_db::Database) {
    if let lavra_db::Database::Postgres(pg) = database {
        let listener = pg.listen("test");
        while !listener.is_live() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}
