//! Many rows at once: COPY in binary, into several tables in one transaction.

use std::pin::pin;

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::{Call, Param, Pg, is_outdated};
use crate::{Error, Result};

/// Rows for one table.
#[derive(Debug)]
pub struct CopyIn<'a> {
    /// The table with its columns, as COPY wants them: `t (a, b)`.
    pub into: &'static str,
    pub types: &'a [Type],
    pub rows: Vec<Vec<&'a (dyn ToSql + Sync)>>,
}

impl Pg {
    /// Copies the rows and then runs the statements, all in one transaction. `false` where that
    /// cannot be: behind a pooler, and where row-level security wants to see each row. Nothing
    /// was written then.
    pub async fn copy(
        &self,
        operation: &'static str,
        parts: &[CopyIn<'_>],
        then: &[(&str, &[Param<'_>])],
    ) -> Result<bool> {
        if !self.sessions.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(false);
        }
        let call = Call { client: Some(self.client().await?), dial: &self.dial };
        match tokio::time::timeout(self.limit, call.copy(self, parts, then)).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(source)) if is_outdated(&source) => Ok(false),
            Ok(Err(source)) => Err(Error::Postgres { operation, source }),
            Err(_) => {
                Err(Error::Timeout { operation, host: self.dial.host.clone(), limit: self.limit })
            }
        }
    }
}

impl Call<'_> {
    async fn copy(
        mut self,
        pg: &Pg,
        parts: &[CopyIn<'_>],
        then: &[(&str, &[Param<'_>])],
    ) -> Result<(), tokio_postgres::Error> {
        let Some(client) = &mut self.client else { return Ok(()) };
        let answer = async {
            let transaction = client.transaction().await?;
            for part in parts {
                let sql = format!("COPY {} FROM STDIN BINARY", part.into);
                let statement = transaction.prepare_cached(&pg.schema.apply(&sql)).await?;
                let sink = transaction.copy_in(&statement).await?;
                let mut writer = pin!(BinaryCopyInWriter::new(sink, part.types));
                for row in &part.rows {
                    writer.as_mut().write(row).await?;
                }
                writer.finish().await?;
            }
            for (sql, params) in then {
                transaction.query_typed(&pg.schema.apply(sql), params).await?;
            }
            transaction.commit().await
        };
        let answer = answer.await;
        self.settle(answer.as_ref().err(), true);
        answer
    }
}
