//! Workers, proxies and writers, as people add, change and remove them.
//!
//! Names are unique per table and URLs among workers. The specification's tables have no such constraint,
//! and older rows may break it; so it is checked, one change at a time.

use async_trait::async_trait;
use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::error::SqlState;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::{Param, Transaction};

use super::{Lock, Postgres, TAKE_LOCK, get, refused};
use crate::error::Result;
use crate::model::{ProxyId, WorkerId, WriterId};
use crate::store::{Edit, Edited, NewProxy, NewWorker, NewWriter, Thing, Things};

const ADD_WORKER: &str = "
WITH taken AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM public.workers WHERE name = $2 AND id <> $1) AS name,
           EXISTS (SELECT 1 FROM public.workers WHERE url = $3 AND id <> $1) AS url
), added AS (
    INSERT INTO public.workers (id, name, url, api_key, storage_domain, active)
    SELECT $1, $2, $3, $4, $5, $6 FROM taken WHERE NOT name AND NOT url
)
SELECT name, url, true FROM taken";

const ADD_PROXY: &str = "
WITH taken AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM public.proxies WHERE name = $2 AND id <> $1) AS name
), added AS (
    INSERT INTO public.proxies (id, name, host, port, username, password, active)
    SELECT $1, $2, $3, $4, $5, $6, $7 FROM taken WHERE NOT name
)
SELECT name, false, true FROM taken";

const ADD_WRITER: &str = "
WITH taken AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM public.writers WHERE name = $2 AND id <> $1) AS name
), added AS (
    INSERT INTO public.writers (id, name, url, api_key, active)
    SELECT $1, $2, $3, $4, $5 FROM taken WHERE NOT name
)
SELECT name, false, true FROM taken";

const EDIT_WORKER: &str = "
WITH taken AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM public.workers WHERE name = $2 AND id <> $1) AS name,
           EXISTS (SELECT 1 FROM public.workers WHERE url = $3 AND id <> $1) AS url
), changed AS (
    UPDATE public.workers w SET
        name = coalesce($2, w.name), url = coalesce($3, w.url), api_key = coalesce($4, w.api_key),
        storage_domain = coalesce($5, w.storage_domain), active = coalesce($6, w.active),
        updated_at = now()
    FROM taken t WHERE w.id = $1 AND NOT t.name AND NOT t.url RETURNING w.id
)
SELECT name, url, EXISTS (SELECT 1 FROM changed) FROM taken";

/// One that is made active again starts with no failure.
const EDIT_PROXY: &str = "
WITH taken AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM public.proxies WHERE name = $2 AND id <> $1) AS name
), changed AS (
    UPDATE public.proxies p SET
        name = coalesce($2, p.name), host = coalesce($3, p.host), port = coalesce($4, p.port),
        username = coalesce($5, p.username), password = coalesce($6, p.password),
        active = coalesce($7, p.active), fail_count = CASE WHEN $7 THEN 0 ELSE p.fail_count END
    FROM taken t WHERE p.id = $1 AND NOT t.name RETURNING p.id
)
SELECT name, false, EXISTS (SELECT 1 FROM changed) FROM taken";

const EDIT_WRITER: &str = "
WITH taken AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM public.writers WHERE name = $2 AND id <> $1) AS name
), changed AS (
    UPDATE public.writers w SET
        name = coalesce($2, w.name), url = coalesce($3, w.url), api_key = coalesce($4, w.api_key),
        active = coalesce($5, w.active), updated_at = now()
    FROM taken t WHERE w.id = $1 AND NOT t.name RETURNING w.id
)
SELECT name, false, EXISTS (SELECT 1 FROM changed) FROM taken";

const REMOVE_WORKER: &str = "
WITH mine AS MATERIALIZED (
    SELECT id, status::text, status <> 'idle' OR current_mission_id IS NOT NULL AS is_at_work,
           EXISTS (SELECT 1 FROM public.missions m WHERE m.worker_id = $1) AS is_named
    FROM public.workers WHERE id = $1 FOR UPDATE
), gone AS (
    DELETE FROM public.workers w USING mine
    WHERE w.id = mine.id AND NOT is_at_work AND NOT is_named
)
SELECT status, is_at_work, is_named FROM mine";

const REMOVE_PROXY: &str = "
WITH mine AS MATERIALIZED (
    SELECT id, in_use_by_worker_id FROM public.proxies WHERE id = $1 FOR UPDATE
), gone AS (
    DELETE FROM public.proxies p USING mine
    WHERE p.id = mine.id AND mine.in_use_by_worker_id IS NULL
)
SELECT in_use_by_worker_id FROM mine";

const REMOVE_WRITER: &str = "
WITH mine AS MATERIALIZED (
    SELECT id, EXISTS (SELECT 1 FROM public.missions m
                       WHERE m.writer_id = $1 AND m.status IN ('queued', 'running')) AS is_named
    FROM public.writers WHERE id = $1 FOR UPDATE
), gone AS (
    DELETE FROM public.writers w USING mine WHERE w.id = mine.id AND NOT is_named
)
SELECT is_named FROM mine";

fn edited(operation: &'static str, rows: &[Row]) -> Result<Edited> {
    let Some(row) = rows.first() else { return Ok(Edited::NotFound) };
    Ok(if get(operation, row, 0)? {
        Edited::NameTaken
    } else if get(operation, row, 1)? {
        Edited::UrlTaken
    } else if get(operation, row, 2)? {
        Edited::Done
    } else {
        Edited::NotFound
    })
}

/// The table of a thing, and its column with the secret.
fn place(thing: &Thing) -> (&'static str, &'static str) {
    match thing {
        Thing::Worker(_) => ("workers", "api_key"),
        Thing::Proxy(_) => ("proxies", "password"),
        Thing::Writer(_) => ("writers", "api_key"),
    }
}

#[async_trait]
impl Things for Postgres {
    async fn add_worker(&self, new: NewWorker) -> Result<Edited> {
        let params = [
            (&new.id.0 as _, Type::TEXT),
            (&new.name as _, Type::TEXT),
            (&new.url as _, Type::TEXT),
            (&new.api_key as _, Type::TEXT),
            (&new.storage_domain as _, Type::TEXT),
            (&new.active as _, Type::BOOL),
        ];
        self.under_names("add a worker", ADD_WORKER, &params).await
    }

    async fn add_proxy(&self, new: NewProxy) -> Result<Edited> {
        let params = [
            (&new.id.0 as _, Type::TEXT),
            (&new.name as _, Type::TEXT),
            (&new.host as _, Type::TEXT),
            (&new.port as _, Type::INT4),
            (&new.username as _, Type::TEXT),
            (&new.password as _, Type::TEXT),
            (&new.active as _, Type::BOOL),
        ];
        self.under_names("add a proxy", ADD_PROXY, &params).await
    }

    async fn add_writer(&self, new: NewWriter) -> Result<Edited> {
        let params = [
            (&new.id.0 as _, Type::TEXT),
            (&new.name as _, Type::TEXT),
            (&new.url as _, Type::TEXT),
            (&new.api_key as _, Type::TEXT),
            (&new.active as _, Type::BOOL),
        ];
        self.under_names("add a writer", ADD_WRITER, &params).await
    }

    async fn edit(&self, thing: &Thing, edit: Edit) -> Result<Edited> {
        let Edit { name, url, storage_domain, host, port, username, secret, active } = &edit;
        let id = thing.id();
        let id: Param<'_> = (&id, Type::TEXT);
        let name: Param<'_> = (name, Type::TEXT);
        let url: Param<'_> = (url, Type::TEXT);
        let secret: Param<'_> = (secret, Type::TEXT);
        let active: Param<'_> = (active, Type::BOOL);
        match thing {
            Thing::Worker(_) => {
                let domain: Param<'_> = (storage_domain, Type::TEXT);
                let params = [id, name, url, secret, domain, active];
                self.under_names("change a worker", EDIT_WORKER, &params).await
            }
            Thing::Proxy(_) => {
                let host: Param<'_> = (host, Type::TEXT);
                let port: Param<'_> = (port, Type::INT4);
                let username: Param<'_> = (username, Type::TEXT);
                let params = [id, name, host, port, username, secret, active];
                self.under_names("change a proxy", EDIT_PROXY, &params).await
            }
            Thing::Writer(_) => {
                let params = [id, name, url, secret, active];
                self.under_names("change a writer", EDIT_WRITER, &params).await
            }
        }
    }

    async fn remove(&self, thing: &Thing) -> Result<Edited> {
        match thing {
            Thing::Worker(id) => self.remove_worker(id).await,
            Thing::Proxy(id) => self.remove_proxy(id).await,
            Thing::Writer(id) => self.remove_writer(id).await,
        }
    }

    async fn tested(&self, thing: &Thing, ok: bool) -> Result<()> {
        let (table, _) = place(thing);
        let sql = format!(
            "UPDATE public.{table} SET last_test_at = now(), last_test_ok = $2 WHERE id = $1"
        );
        let params = [(&thing.id() as _, Type::TEXT), (&ok as _, Type::BOOL)];
        self.pg.query("note a test", &sql, &params).await?;
        Ok(())
    }

    async fn secret(&self, thing: &Thing) -> Result<Option<String>> {
        let operation = "read a secret's reference";
        let (table, column) = place(thing);
        let sql = format!("SELECT {column} FROM public.{table} WHERE id = $1");
        let rows = self.pg.query(operation, &sql, &[(&thing.id() as _, Type::TEXT)]).await?;
        match rows.first() {
            Some(row) => get(operation, row, 0),
            None => Ok(None),
        }
    }
}

impl Postgres {
    /// Runs a statement that checks names, alone.
    async fn under_names(
        &self,
        operation: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Edited> {
        let mut transaction: Transaction<'_> = self.pg.transaction(operation).await?;
        let lock = Lock::Names.number();
        transaction.query(TAKE_LOCK, &[(&lock as _, Type::INT8)]).await?;
        let rows = transaction.finish(sql, params).await.map_err(refused)?;
        edited(operation, &rows)
    }

    async fn remove_worker(&self, id: &WorkerId) -> Result<Edited> {
        let operation = "remove a worker";
        let named = || Edited::InUse("missions name it".into());
        let rows = match self.pg.query(operation, REMOVE_WORKER, &[(&id.0 as _, Type::TEXT)]).await
        {
            // Something began to name it just now.
            Err(lavra_db::Error::Postgres { source, .. })
                if source.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION) =>
            {
                return Ok(named());
            }
            answer => answer?,
        };
        let Some(row) = rows.first() else { return Ok(Edited::NotFound) };
        if get(operation, row, 1)? {
            return Ok(Edited::InUse(format!("it is {}", get::<String>(operation, row, 0)?)));
        }
        Ok(if get(operation, row, 2)? { named() } else { Edited::Done })
    }

    async fn remove_proxy(&self, id: &ProxyId) -> Result<Edited> {
        let operation = "remove a proxy";
        let rows = self.pg.query(operation, REMOVE_PROXY, &[(&id.0 as _, Type::TEXT)]).await?;
        let Some(row) = rows.first() else { return Ok(Edited::NotFound) };
        Ok(match get::<Option<String>>(operation, row, 0)? {
            Some(worker) => Edited::InUse(format!("the worker {worker} uses it")),
            None => Edited::Done,
        })
    }

    async fn remove_writer(&self, id: &WriterId) -> Result<Edited> {
        let operation = "remove a writer";
        let rows = self.pg.query(operation, REMOVE_WRITER, &[(&id.0 as _, Type::TEXT)]).await?;
        let Some(row) = rows.first() else { return Ok(Edited::NotFound) };
        Ok(if get(operation, row, 0)? {
            Edited::InUse("missions are being stored by it".into())
        } else {
            Edited::Done
        })
    }
}
