//! Missions, their log, and who works on them.

use async_trait::async_trait;
use lavra_db::duckdb::params_from_iter;

use super::condition::Conditions;
use super::{DuckDb, at_most, row};
use crate::error::Result;
use crate::model::{LogEntry, Mission, MissionId, Proxy, Worker, Writer};
use crate::store::{Counts, Filter, LogFilter, Reads};

#[async_trait]
impl Reads for DuckDb {
    async fn missions(
        &self,
        filter: &Filter,
        before: Option<MissionId>,
        limit: usize,
    ) -> Result<Vec<Mission>> {
        let mut conditions = Conditions::of_missions(filter)?;
        conditions.add_if("id < ?", before.map(|id| id.0));
        let sql = format!(
            "SELECT to_json(r)::VARCHAR
             FROM (SELECT * FROM public.missions WHERE {} ORDER BY id DESC LIMIT {}) r
             ORDER BY r.id DESC",
            conditions.sql(),
            at_most(limit),
        );
        let params = params_from_iter(conditions.params);
        self.select("read the missions", &sql, params, row::read).await
    }

    async fn counts(&self) -> Result<Counts> {
        let sql = "SELECT
                count(*) FILTER (WHERE status = 'queued' AND queued_at IS NULL),
                count(*) FILTER (WHERE status = 'queued' AND queued_at IS NOT NULL),
                count(*) FILTER (WHERE status = 'running'
                                   AND checkpoint IS DISTINCT FROM 'armazenamento'),
                count(*) FILTER (WHERE status = 'running' AND checkpoint = 'armazenamento'),
                count(*) FILTER (WHERE status = 'completed'),
                count(*) FILTER (WHERE status = 'failed'),
                count(*) FILTER (WHERE status = 'canceled')
            FROM public.missions";
        let counts = self.select("count the missions", sql, (), |row| {
            Ok(Counts {
                bank: row.get(0)?,
                queued: row.get(1)?,
                extracao: row.get(2)?,
                armazenamento: row.get(3)?,
                completed: row.get(4)?,
                failed: row.get(5)?,
                canceled: row.get(6)?,
            })
        });
        Ok(counts.await?.into_iter().next().unwrap_or_default())
    }

    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>> {
        let conditions = Conditions::of_log(filter)?;
        let way = if filter.oldest_first { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT to_json(r)::VARCHAR
             FROM (SELECT * REPLACE (coalesce(details, '{{}}') AS details) FROM public.mission_logs
                   WHERE {} ORDER BY timestamp {way}, id {way} LIMIT {}) r
             ORDER BY r.timestamp {way}, r.id {way}",
            conditions.sql(),
            at_most(filter.limit),
        );
        self.select("read the log", &sql, params_from_iter(conditions.params), row::read).await
    }

    async fn workers(&self) -> Result<Vec<Worker>> {
        self.select("read the workers", &row::by_age::<Worker>(), (), row::read).await
    }

    async fn proxies(&self) -> Result<Vec<Proxy>> {
        self.select("read the proxies", &row::by_age::<Proxy>(), (), row::read).await
    }

    async fn writers(&self) -> Result<Vec<Writer>> {
        self.select("read the writers", &row::by_age::<Writer>(), (), row::read).await
    }
}
