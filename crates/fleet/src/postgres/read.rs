//! What people look at: missions, counts, the log, and the lists of workers, proxies and writers.

use async_trait::async_trait;
use lavra_db::Param;
use lavra_db::tokio_postgres::types::Type;

use super::condition::Conditions;
use super::row::{self, FromRow};
use super::{Postgres, get, refused};
use crate::error::Result;
use crate::model::{LogEntry, Mission, MissionId, Proxy, Worker, Writer};
use crate::store::{Counts, Filter, LogFilter, Reads};

const COUNTS: &str = "
SELECT count(*) FILTER (WHERE status = 'queued' AND queued_at IS NULL),
       count(*) FILTER (WHERE status = 'queued' AND queued_at IS NOT NULL),
       count(*) FILTER (WHERE status = 'running' AND checkpoint IS DISTINCT FROM 'armazenamento'),
       count(*) FILTER (WHERE status = 'running' AND checkpoint = 'armazenamento'),
       count(*) FILTER (WHERE status = 'completed'),
       count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'canceled')
FROM public.missions";

#[async_trait]
impl Reads for Postgres {
    async fn missions(
        &self,
        filter: &Filter,
        before: Option<MissionId>,
        limit: usize,
    ) -> Result<Vec<Mission>> {
        let mut conditions = Conditions::of_missions(filter);
        if let Some(id) = before {
            let id = conditions.bind(id.0, Type::TEXT);
            conditions.plain(&format!("m.id < {id}"));
        }
        let limit = conditions.bind(limit as i64, Type::INT8);
        let sql = format!(
            "SELECT to_jsonb(m)::text FROM public.missions m WHERE {}
             ORDER BY m.id DESC LIMIT {limit}",
            conditions.sql()
        );
        self.read_all("read the missions", &sql, &conditions.params()).await
    }

    async fn counts(&self) -> Result<Counts> {
        let operation = "count the missions";
        let rows = self.pg.query(operation, COUNTS, &[]).await?;
        let Some(row) = rows.first() else { return Ok(Counts::default()) };
        Ok(Counts {
            bank: get(operation, row, 0)?,
            queued: get(operation, row, 1)?,
            extracao: get(operation, row, 2)?,
            armazenamento: get(operation, row, 3)?,
            completed: get(operation, row, 4)?,
            failed: get(operation, row, 5)?,
            canceled: get(operation, row, 6)?,
        })
    }

    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>> {
        let mut conditions = Conditions::of_entries(filter);
        let limit = conditions.bind(filter.limit as i64, Type::INT8);
        let direction = if filter.oldest_first { "ASC" } else { "DESC" };
        let order = format!("ORDER BY l.timestamp {direction}, l.id {direction} LIMIT {limit}");
        let walk = |conditions: &str| {
            format!("SELECT l.* FROM public.mission_logs l WHERE {conditions} {order}")
        };
        let entries = if filter.events.is_empty() {
            walk(&conditions.sql())
        } else {
            // One walk along the index for each kind: over several at once it would sort them all.
            let kinds: Vec<&'static str> = filter.events.iter().map(|it| it.as_str()).collect();
            let kinds = conditions.bind(kinds, Type::TEXT_ARRAY);
            let of_kind = walk(&format!("l.event = kind.event AND {}", conditions.sql()));
            format!(
                "SELECT l.* FROM (SELECT DISTINCT unnest({kinds}::public.mission_event[]))
                     AS kind (event)
                 CROSS JOIN LATERAL ({of_kind}) l"
            )
        };
        let sql = format!("SELECT to_jsonb(l)::text FROM ({entries}) l {order}");
        self.read_all("read the log", &sql, &conditions.params()).await
    }

    async fn workers(&self) -> Result<Vec<Worker>> {
        let sql = "SELECT (to_jsonb(w) - 'api_key')::text FROM public.workers w
                   ORDER BY w.created_at, w.id";
        self.read_all("read the workers", sql, &[]).await
    }

    async fn proxies(&self) -> Result<Vec<Proxy>> {
        let sql = "SELECT (to_jsonb(p) - 'password')::text FROM public.proxies p
                   ORDER BY p.created_at, p.id";
        self.read_all("read the proxies", sql, &[]).await
    }

    async fn writers(&self) -> Result<Vec<Writer>> {
        let sql = "SELECT (to_jsonb(w) - 'api_key')::text FROM public.writers w
                   ORDER BY w.created_at, w.id";
        self.read_all("read the writers", sql, &[]).await
    }
}

impl Postgres {
    /// The rows of a statement whose first column is one as JSON.
    async fn read_all<T: FromRow>(
        &self,
        operation: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<T>> {
        let rows = self.pg.query(operation, sql, params).await.map_err(refused)?;
        rows.iter().map(|found| row::read(&get::<String>(operation, found, 0)?)).collect()
    }
}
