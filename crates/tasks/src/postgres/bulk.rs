//! Creation of many plain tasks by COPY, which costs the server less than an INSERT of them.
//! Plain is what nothing can stand in the way of: no input hash, no key, no delay.

use bytes::{BufMut, BytesMut};
use lavra_db::CopyIn;
use lavra_db::tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use super::Postgres;
use crate::bell;
use crate::error::Result;
use crate::store::{Along, NewRow};

/// From here on the round trips of a COPY are worth it.
const MANY: usize = 100;

const OUTBOX: &str = "
INSERT INTO kodus_workflow.task_outbox (id, task_id, type, next_at)
SELECT *, now() + make_interval(secs => $4) FROM unnest($1::uuid[], $2::uuid[], $3::text[])";

const BELL: &str = "SELECT pg_notify($1, $2)";

impl Postgres {
    /// `false` where COPY is not for these rows, or not possible; nothing was written then.
    pub(super) async fn insert_by_copy(&self, input: &[NewRow], along: Along) -> Result<bool> {
        let is_plain =
            |row: &NewRow| row.input_hash.is_none() && row.key.is_none() && row.delay.is_none();
        if input.len() < MANY || !input.iter().all(is_plain) {
            return Ok(false);
        }
        let json = |text: fn(&NewRow) -> &str| -> Vec<Json<'_>> {
            input.iter().map(|row| Json(text(row))).collect()
        };
        let (metadata, payloads, details) =
            (json(|row| &row.metadata), json(|row| &row.payload), json(|row| &row.detail));
        let tasks = CopyIn {
            into: "kodus_workflow.tasks
                       (id, type, status, state, priority, metadata, max_retries)",
            types: &[
                Type::UUID,
                Type::TEXT,
                Type::TEXT,
                Type::TEXT,
                Type::INT2,
                Type::JSONB,
                Type::INT4,
            ],
            rows: (input.iter().zip(&metadata))
                .map(|(row, metadata)| -> Vec<&(dyn ToSql + Sync)> {
                    let (kind, retries) = (&row.kind, &row.max_retries);
                    vec![&row.id.0, kind, &"PENDING", &"Queued", &row.priority, metadata, retries]
                })
                .collect(),
        };
        let payloads = CopyIn {
            into: "kodus_workflow.task_inputs (task_id, payload)",
            types: &[Type::UUID, Type::JSONB],
            rows: (input.iter().zip(&payloads))
                .map(|(row, payload)| -> Vec<&(dyn ToSql + Sync)> { vec![&row.id.0, payload] })
                .collect(),
        };
        let events = CopyIn {
            into: "kodus_workflow.task_events
                       (id, task_id, status, state, detail, actor, version)",
            types: &[
                Type::UUID,
                Type::UUID,
                Type::TEXT,
                Type::TEXT,
                Type::JSONB,
                Type::TEXT,
                Type::INT4,
            ],
            rows: (input.iter().zip(&details))
                .map(|(row, detail)| -> Vec<&(dyn ToSql + Sync)> {
                    let (event, task) = (&row.event.0, &row.id.0);
                    vec![event, task, &"PENDING", &"Queued", detail, &"API", &0_i32]
                })
                .collect(),
        };

        let ids: Vec<Uuid> = input.iter().map(|row| row.event.0).collect();
        let about: Vec<Uuid> = input.iter().map(|row| row.id.0).collect();
        let kinds: Vec<&str> = input.iter().map(|row| row.kind.as_str()).collect();
        let lease = along.announce.unwrap_or_default().as_secs_f64();
        let outbox = [
            (&ids as _, Type::UUID_ARRAY),
            (&about as _, Type::UUID_ARRAY),
            (&kinds as _, Type::TEXT_ARRAY),
            (&lease as _, Type::FLOAT8),
        ];
        let bell = [(&self.channel as _, Type::TEXT), (&bell::WORK as _, Type::TEXT)];
        let then = [
            along.announce.map(|_| (OUTBOX, outbox.as_slice())),
            along.ring.then_some((BELL, bell.as_slice())),
        ];
        let then: Vec<_> = then.into_iter().flatten().collect();
        Ok(self.pg.copy("create tasks", &[tasks, payloads, events], &then).await?)
    }
}

/// JSON that is text already, as the binary format of `jsonb` wants it.
#[derive(Debug)]
struct Json<'a>(&'a str);

impl ToSql for Json<'_> {
    fn to_sql(
        &self,
        _kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        const VERSION: u8 = 1;
        out.put_u8(VERSION);
        out.put_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSONB
    }

    to_sql_checked!();
}
