//! What a window holds, for those who check what was read of it.

use std::sync::Arc;

use serde_json::Value;

use crate::canonical::{Entry, hash};
use crate::json::{Order, Writer};
use crate::listing::Listing;
use crate::records::{Records, Slot};

/// Days for which a price register is in force. `/v1/atas` gives those that are in force on any day
/// of its window, so the registers of the year before it belong to it as well.
pub(crate) const IN_FORCE: i32 = 365;

/// How many places are looked up at once.
const STEP: u64 = 512;

/// The records of a window as they are now; later changes of the world do not change it.
#[derive(Clone, Debug)]
pub struct Truth {
    records: Arc<Records>,
    listing: Listing,
}

impl Truth {
    pub(crate) const fn new(records: Arc<Records>, listing: Listing) -> Self {
        Self { records, listing }
    }

    /// What `totalRegistros` says. Plans are counted by their items.
    pub const fn total(&self) -> u64 {
        self.listing.total()
    }

    /// The natural keys, in the order of the pages.
    ///
    /// `numeroControlePNCP` or `numeroControlePNCPAta`; for instrumentos
    /// `cnpj|ano|sequencialContrato|sequencialInstrumentoCobranca`; for items of plans
    /// `idPcaPncp|numeroItem`.
    pub fn keys(&self) -> impl Iterator<Item = String> + '_ {
        self.slots().map(|slot| self.records.key(&slot))
    }

    /// Key and hash of each record, in the order of the pages.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.slots().map(|slot| self.entry_of(&slot))
    }

    /// The entry at a position, from 0.
    pub fn entry(&self, position: u64) -> Option<Entry> {
        self.slot(position).map(|slot| self.entry_of(&slot))
    }

    /// The record at a position, from 0.
    pub fn record(&self, position: u64) -> Option<Value> {
        let text = self.text(&self.slot(position)?);
        serde_json::from_slice(&text).ok()
    }

    fn slot(&self, position: u64) -> Option<Slot> {
        self.listing.slots(position..position.saturating_add(1)).pop()
    }

    fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let steps = 0..self.total().div_ceil(STEP);
        steps.flat_map(|step| self.listing.slots(step * STEP..(step + 1) * STEP))
    }

    fn entry_of(&self, slot: &Slot) -> Entry {
        Entry { key: self.records.key(slot), sha256: hash(&self.text(slot)) }
    }

    /// The canonical form: written with the keys sorted, which is cheaper than sorting them after.
    fn text(&self, slot: &Slot) -> Vec<u8> {
        let mut writer = Writer::new(Order::Sorted, 2048);
        self.records.write(&mut writer, slot);
        writer.finish()
    }
}
