//! How values travel.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use lavra_db::tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// JSON text as a jsonb parameter: parsed once, by the server.
#[derive(Debug)]
pub(super) struct Jsonb<'a>(pub(super) &'a str);

impl ToSql for Jsonb<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.reserve(self.0.len() + 1);
        // The version of the format.
        out.put_u8(1);
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSONB
    }

    to_sql_checked!();
}
