//! Workers, proxies and writers, as people add, change and remove them.

use async_trait::async_trait;
use lavra_db::duckdb::{self, Connection};
use lavra_db::micros;

use super::{DuckDb, change, exists, first, run};
use crate::error::Result;
use crate::store::{Edit, Edited, NewProxy, NewWorker, NewWriter, Thing, Things};

#[async_trait]
impl Things for DuckDb {
    async fn add_worker(&self, new: NewWorker) -> Result<Edited> {
        let now = micros(self.now());
        let job = move |tx: &Connection| {
            let thing = Thing::Worker(new.id.clone());
            if has_name(tx, &thing, &new.name)? {
                return Ok(Edited::NameTaken);
            }
            if has_url(tx, &new.id.0, &new.url)? {
                return Ok(Edited::UrlTaken);
            }
            let sql = "INSERT INTO public.workers
                           (id, name, url, api_key, storage_domain, active, created_at, updated_at)
                       VALUES ($1, $2, $3, $4, $5, $6, make_timestamp($7), make_timestamp($7))";
            let NewWorker { id, name, url, api_key, storage_domain, active } = &new;
            run(tx, sql, duckdb::params![id.0, name, url, api_key, storage_domain, active, now])?;
            Ok(Edited::Done)
        };
        Ok(self.duck.write("add a worker", job).await?)
    }

    async fn add_proxy(&self, new: NewProxy) -> Result<Edited> {
        let now = micros(self.now());
        let job = move |tx: &Connection| {
            if has_name(tx, &Thing::Proxy(new.id.clone()), &new.name)? {
                return Ok(Edited::NameTaken);
            }
            let sql = "INSERT INTO public.proxies
                           (id, name, host, port, username, password, active, created_at)
                       VALUES ($1, $2, $3, $4, $5, $6, $7, make_timestamp($8))";
            let NewProxy { id, name, host, port, username, password, active } = &new;
            let params = duckdb::params![id.0, name, host, port, username, password, active, now];
            run(tx, sql, params)?;
            Ok(Edited::Done)
        };
        Ok(self.duck.write("add a proxy", job).await?)
    }

    async fn add_writer(&self, new: NewWriter) -> Result<Edited> {
        let now = micros(self.now());
        let job = move |tx: &Connection| {
            if has_name(tx, &Thing::Writer(new.id.clone()), &new.name)? {
                return Ok(Edited::NameTaken);
            }
            let sql = "INSERT INTO public.writers
                           (id, name, url, api_key, active, created_at, updated_at)
                       VALUES ($1, $2, $3, $4, $5, make_timestamp($6), make_timestamp($6))";
            let NewWriter { id, name, url, api_key, active } = &new;
            run(tx, sql, duckdb::params![id.0, name, url, api_key, active, now])?;
            Ok(Edited::Done)
        };
        Ok(self.duck.write("add a writer", job).await?)
    }

    async fn edit(&self, thing: &Thing, edit: Edit) -> Result<Edited> {
        let operation = match thing {
            Thing::Worker(_) => "change a worker",
            Thing::Proxy(_) => "change a proxy",
            Thing::Writer(_) => "change a writer",
        };
        let (thing, now) = (thing.clone(), micros(self.now()));
        let job = move |tx: &Connection| {
            if let Some(name) = &edit.name
                && has_name(tx, &thing, name)?
            {
                return Ok(Edited::NameTaken);
            }
            if let (Thing::Worker(id), Some(url)) = (&thing, &edit.url)
                && has_url(tx, &id.0, url)?
            {
                return Ok(Edited::UrlTaken);
            }
            let Edit { name, url, storage_domain, host, port, username, secret, active } = &edit;
            let id = thing.id();
            let changed = match &thing {
                Thing::Worker(_) => {
                    let sql = "UPDATE public.workers SET name = coalesce($2, name),
                                   url = coalesce($3, url), active = coalesce($4, active),
                                   storage_domain = coalesce($5, storage_domain),
                                   api_key = coalesce($6, api_key), updated_at = make_timestamp($7)
                               WHERE id = $1";
                    let params =
                        duckdb::params![id, name, url, active, storage_domain, secret, now];
                    change(tx, sql, params)?
                }
                Thing::Proxy(_) => {
                    let sql = "UPDATE public.proxies SET name = coalesce($2, name),
                                   host = coalesce($3, host), port = coalesce($4, port),
                                   username = coalesce($5, username),
                                   password = coalesce($6, password),
                                   active = coalesce($7, active),
                                   fail_count = CASE WHEN $7 THEN 0 ELSE fail_count END
                               WHERE id = $1";
                    change(
                        tx,
                        sql,
                        duckdb::params![id, name, host, port, username, secret, active],
                    )?
                }
                Thing::Writer(_) => {
                    let sql = "UPDATE public.writers SET name = coalesce($2, name),
                                   url = coalesce($3, url), active = coalesce($4, active),
                                   api_key = coalesce($5, api_key), updated_at = make_timestamp($6)
                               WHERE id = $1";
                    change(tx, sql, duckdb::params![id, name, url, active, secret, now])?
                }
            };
            Ok(if changed > 0 { Edited::Done } else { Edited::NotFound })
        };
        Ok(self.duck.write(operation, job).await?)
    }

    async fn remove(&self, thing: &Thing) -> Result<Edited> {
        let operation = match thing {
            Thing::Worker(_) => "remove a worker",
            Thing::Proxy(_) => "remove a proxy",
            Thing::Writer(_) => "remove a writer",
        };
        let thing = thing.clone();
        let job = move |tx: &Connection| {
            if let Some(why) = in_use(tx, &thing)? {
                return Ok(Edited::InUse(why));
            }
            let sql = format!("DELETE FROM {} WHERE id = $1", table(&thing));
            let removed = change(tx, &sql, (thing.id(),))?;
            Ok(if removed > 0 { Edited::Done } else { Edited::NotFound })
        };
        Ok(self.duck.write(operation, job).await?)
    }

    async fn tested(&self, thing: &Thing, ok: bool) -> Result<()> {
        let now = micros(self.now());
        let sql = format!(
            "UPDATE {} SET last_test_at = make_timestamp($2), last_test_ok = $3 WHERE id = $1",
            table(thing)
        );
        let id = thing.id().to_owned();
        let job = move |tx: &Connection| run(tx, &sql, (&id, now, ok));
        Ok(self.duck.write("note a test", job).await?)
    }

    async fn secret(&self, thing: &Thing) -> Result<Option<String>> {
        let column = match thing {
            Thing::Worker(_) | Thing::Writer(_) => "api_key",
            Thing::Proxy(_) => "password",
        };
        let sql = format!("SELECT {column} FROM {} WHERE id = $1", table(thing));
        let id = thing.id().to_owned();
        let found = self.select("read a secret's reference", &sql, (id,), |row| row.get(0)).await?;
        Ok(found.into_iter().next().flatten())
    }
}

fn table(thing: &Thing) -> &'static str {
    match thing {
        Thing::Worker(_) => "public.workers",
        Thing::Proxy(_) => "public.proxies",
        Thing::Writer(_) => "public.writers",
    }
}

/// Whether another one has the name.
fn has_name(tx: &Connection, thing: &Thing, name: &str) -> duckdb::Result<bool> {
    let sql = format!("SELECT 1 FROM {} WHERE name = $1 AND id <> $2 LIMIT 1", table(thing));
    exists(tx, &sql, (name, thing.id()))
}

/// Whether another worker has the URL.
fn has_url(tx: &Connection, id: &str, url: &str) -> duckdb::Result<bool> {
    let sql = "SELECT 1 FROM public.workers WHERE url = $1 AND id <> $2 LIMIT 1";
    exists(tx, sql, (url, id))
}

/// Why it cannot be removed.
fn in_use(tx: &Connection, thing: &Thing) -> duckdb::Result<Option<String>> {
    match thing {
        Thing::Worker(id) => {
            let sql = "SELECT status, current_mission_id IS NOT NULL FROM public.workers
                       WHERE id = $1";
            let read = |row: &duckdb::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let Some((status, has_mission)): Option<(String, bool)> =
                first(tx, sql, (&id.0,), read)?
            else {
                return Ok(None);
            };
            if status != "idle" || has_mission {
                return Ok(Some(format!("it is {status}")));
            }
            let sql = "SELECT 1 FROM public.missions WHERE worker_id = $1 LIMIT 1";
            Ok(exists(tx, sql, (&id.0,))?.then(|| "missions name it".to_owned()))
        }
        Thing::Proxy(id) => {
            let sql = "SELECT in_use_by_worker_id FROM public.proxies WHERE id = $1";
            let user: Option<Option<String>> = first(tx, sql, (&id.0,), |row| row.get(0))?;
            Ok(user.flatten().map(|worker| format!("the worker {worker} uses it")))
        }
        Thing::Writer(id) => {
            let sql = "SELECT 1 FROM public.missions
                       WHERE writer_id = $1 AND status IN ('queued', 'running') LIMIT 1";
            Ok(exists(tx, sql, (&id.0,))?.then(|| "missions are being stored by it".to_owned()))
        }
    }
}
