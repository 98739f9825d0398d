//! One behaviour, one function; one test of it per engine. The crate that uses it has a
//! `support::World` that opens a store on each.

/// Makes `behaviour::duckdb`, `behaviour::postgres` and `behaviour::pgbouncer` of each function.
#[expect(clippy::crate_in_macro_def, reason = "the crate that calls has the World")]
#[macro_export]
macro_rules! on_each_engine {
    ($($behaviour:ident),* $(,)?) => {
        $(mod $behaviour {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn duckdb() {
                super::$behaviour(crate::support::World::on_duckdb().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$behaviour(crate::support::World::on_postgres().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn pgbouncer() {
                super::$behaviour(crate::support::World::behind_pgbouncer().await).await;
            }
        })*
    };
}

/// For what only several processes can do to each other.
#[expect(clippy::crate_in_macro_def, reason = "the crate that calls has the World")]
#[macro_export]
macro_rules! on_servers {
    ($($behaviour:ident),* $(,)?) => {
        $(mod $behaviour {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$behaviour(crate::support::World::on_postgres().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn pgbouncer() {
                super::$behaviour(crate::support::World::behind_pgbouncer().await).await;
            }
        })*
    };
}
