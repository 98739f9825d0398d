//! A page of a list: the envelope and the records in it.

use crate::json::{Order, Writer};
use crate::listing::Listing;
use crate::records::Records;

/// Bytes that a record is expected to need; only a hint.
const RECORD: usize = 2000;

/// The page, or none past the last one. `lie` takes the place of the total.
pub(crate) fn render(
    records: &Records,
    listing: &Listing,
    page: u64,
    size: u64,
    order: Order,
    lie: Option<u64>,
) -> Option<Vec<u8>> {
    let start = (page - 1).checked_mul(size)?;
    let slots = listing.slots(start..start.saturating_add(size));
    if slots.is_empty() {
        return None;
    }
    let mut writer = Writer::new(order, slots.len() * RECORD + 200);
    writer.between("{\"data\":[");
    records.write_all(&mut writer, &slots);
    let total = lie.unwrap_or(listing.total());
    let pages = total.div_ceil(size);
    let left = pages.saturating_sub(page);
    // The envelope keeps its order, as the real one does.
    writer.between(&format!(
        "],\"totalRegistros\":{total},\"totalPaginas\":{pages},\"numeroPagina\":{page},\
         \"paginasRestantes\":{left},\"empty\":false}}"
    ));
    Some(writer.finish())
}
