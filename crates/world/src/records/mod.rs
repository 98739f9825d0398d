//! One record of each kind, from its place alone.

mod ata;
mod contratacao;
mod contrato;
mod instrumento;
mod pca;

use std::collections::HashMap;

use crate::day::Day;
use crate::dice::Dice;
use crate::endpoint::{CLASSES, Endpoint, FanOut, SYSTEMS};
use crate::json::{Writer, digits};
use crate::key::Key;
use crate::organ::{self, Organ};
use crate::words;

/// The place of a record: the list, the fan-out value, the day, and a number within that day that
/// is its own for ever (not its position, which records before it can move).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Slot {
    pub(crate) endpoint: Endpoint,
    pub(crate) fan: u16,
    pub(crate) day: Day,
    pub(crate) number: u64,
}

/// What can be asked of a record without writing it; filters do.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) key: Key,
    /// A place in [`SYSTEMS`].
    pub(crate) system: usize,
    /// A place in [`CLASSES`].
    pub(crate) class: usize,
    pub(crate) dispute: u16,
    pub(crate) instrument: u16,
    /// For the rest of the record.
    pub(crate) dice: Dice,
}

/// All that records are made from.
#[derive(Debug)]
pub(crate) struct Records {
    seed: u64,
    pub(crate) organs: Vec<Organ>,
    by_cnpj: HashMap<String, u16>,
    /// The length that records are stretched to, where it matters.
    stretch: Option<usize>,
}

impl Records {
    pub(crate) fn new(seed: u64, stretch: Option<usize>) -> Self {
        let organs = organ::all(seed);
        let by_cnpj =
            organs.iter().zip(0..).map(|(organ, number)| (organ.cnpj.clone(), number)).collect();
        Self { seed, organs, by_cnpj, stretch }
    }

    pub(crate) fn facts(&self, slot: &Slot) -> Facts {
        let Slot { endpoint, fan, day, number } = *slot;
        let grouped = if endpoint.counts_items() { number / pca::ITEMS } else { number };
        let key = Key::new(self.seed, lane(endpoint, fan), day, grouped);
        let place = [self.seed, endpoint as u64, fan.into(), day.number() as u64, number];
        let mut dice = Dice::of(&place);
        // What a plan's items share is drawn for the plan.
        let mut shared = if grouped == number {
            dice.clone()
        } else {
            Dice::of(&[self.seed, key.sequence, key.organ.into(), 0x9CA])
        };
        let system = match endpoint.fan_out() {
            FanOut::System => SYSTEMS.iter().position(|(code, _)| *code == fan).unwrap_or(0),
            _ => shared.below(SYSTEMS.len() as u64) as usize,
        };
        let class = match endpoint.fan_out() {
            FanOut::Class => CLASSES.iter().position(|(code, _)| *code == fan).unwrap_or(0),
            _ => dice.below(CLASSES.len() as u64) as usize,
        };
        let bits = dice.roll();
        let (dispute, instrument) = ((bits % 6) as u16 + 1, (bits >> 8) as u16 % 4 + 1);
        Facts { key, system, class, dispute, instrument, dice }
    }

    /// The record as an object of its list. An item of a plan is the plan with that item alone.
    pub(crate) fn write(&self, writer: &mut Writer, slot: &Slot) {
        match slot.endpoint {
            Endpoint::Contratos | Endpoint::ContratosAtualizacao => {
                contrato::write(self, writer, slot);
            }
            Endpoint::ContratacoesPublicacao
            | Endpoint::ContratacoesAtualizacao
            | Endpoint::ContratacoesProposta => contratacao::write(self, writer, slot),
            Endpoint::Atas | Endpoint::AtasAtualizacao => ata::write(self, writer, slot),
            Endpoint::InstrumentosCobranca => instrumento::write(self, writer, slot),
            Endpoint::PcaAtualizacao | Endpoint::Pca | Endpoint::PcaUsuario => {
                pca::write(self, writer, &[*slot]);
            }
        }
    }

    /// The records of a page, as the elements of `data`.
    pub(crate) fn write_all(&self, writer: &mut Writer, slots: &[Slot]) {
        let mut rest = slots;
        while let Some(first) = rest.first() {
            let together = if first.endpoint.counts_items() { pca::same_plan(rest) } else { 1 };
            let (now, later) = rest.split_at(together);
            if first.endpoint.counts_items() {
                pca::write(self, writer, now);
            } else {
                self.write(writer, first);
            }
            rest = later;
            if !rest.is_empty() {
                writer.between(",");
            }
        }
    }

    /// A single contratação by itself, which has fields that lists do not.
    pub(crate) fn write_single(&self, writer: &mut Writer, slot: &Slot) {
        contratacao::write_single(self, writer, slot);
    }

    /// The contratação of the publication list that has this key, if one can.
    pub(crate) fn find(&self, cnpj: &str, year: i32, sequence: u64) -> Option<Slot> {
        let organ = *self.by_cnpj.get(cnpj)?;
        let (lane, day, number) = Key { organ, year, sequence }.place(self.seed)?;
        let (endpoint, fan) = (Endpoint::ContratacoesPublicacao, lane as u16);
        Some(Slot { endpoint, fan, day, number })
    }

    /// The natural key, as text.
    pub(crate) fn key(&self, slot: &Slot) -> String {
        let key = self.facts(slot).key;
        let mut out = Vec::with_capacity(48);
        match slot.endpoint {
            Endpoint::Contratos | Endpoint::ContratosAtualizacao => {
                self.control(&mut out, key, b'2');
            }
            Endpoint::ContratacoesPublicacao
            | Endpoint::ContratacoesAtualizacao
            | Endpoint::ContratacoesProposta => self.control(&mut out, key, b'1'),
            Endpoint::Atas | Endpoint::AtasAtualizacao => self.ata_control(&mut out, key),
            Endpoint::InstrumentosCobranca => {
                out.extend_from_slice(self.organ(key).cnpj.as_bytes());
                for part in [key.year.unsigned_abs().into(), key.sequence, 1] {
                    out.push(b'|');
                    digits(&mut out, part, 1);
                }
            }
            Endpoint::PcaAtualizacao | Endpoint::Pca | Endpoint::PcaUsuario => {
                self.control(&mut out, key, b'0');
                out.push(b'|');
                digits(&mut out, pca::item_number(slot), 1);
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    pub(crate) fn organ(&self, key: Key) -> &Organ {
        &self.organs[usize::from(key.organ)]
    }

    /// `{cnpj}-{kind}-{sequence}/{year}`
    fn control(&self, out: &mut Vec<u8>, key: Key, kind: u8) {
        out.extend_from_slice(self.organ(key).cnpj.as_bytes());
        out.extend_from_slice(&[b'-', kind, b'-']);
        digits(out, key.sequence, 6);
        out.push(b'/');
        digits(out, key.year.unsigned_abs().into(), 4);
    }

    fn ata_control(&self, out: &mut Vec<u8>, key: Key) {
        self.control(out, key, b'1');
        out.extend_from_slice(b"-000001");
    }

    /// The long text of a record that began at `start`, stretched where records have a length.
    fn subject(
        &self,
        writer: &mut Writer,
        name: &'static str,
        start: usize,
        dice: &mut Dice,
        clauses: usize,
    ) {
        let used = writer.len() - start;
        writer.pieces(name, |out| match self.stretch {
            None => words::subject(out, dice, clauses),
            Some(length) => words::long_subject(out, dice, length.saturating_sub(used)),
        });
    }

    fn entity(&self, writer: &mut Writer, key: Key) {
        let organ = self.organ(key);
        writer.nested("orgaoEntidade", |writer| {
            writer.text("cnpj", &organ.cnpj);
            writer.text("razaoSocial", &organ.name);
            writer.text("poderId", organ.power);
            writer.text("esferaId", organ.sphere);
        });
    }

    fn unit(&self, writer: &mut Writer, key: Key) {
        let organ = self.organ(key);
        writer.nested("unidadeOrgao", |writer| {
            writer.text("ufNome", organ.state_name);
            writer.text("codigoIbge", &organ.town_code);
            writer.text("codigoUnidade", &organ.unit_code);
            writer.text("nomeUnidade", &organ.unit_name);
            writer.text("ufSigla", organ.state);
            writer.text("municipioNome", &organ.town);
        });
    }
}

/// The place of a fan-out value among its endpoint's, for the keys.
fn lane(endpoint: Endpoint, fan: u16) -> u64 {
    let place = |table: &[(u16, &str)]| table.iter().position(|(code, _)| *code == fan);
    match endpoint.fan_out() {
        FanOut::None | FanOut::Modality { .. } => u64::from(fan) % 20,
        FanOut::Class => place(&CLASSES).unwrap_or(19) as u64,
        FanOut::System => place(&SYSTEMS).unwrap_or(19) as u64,
    }
}

/// Working hours, in seconds after midnight.
fn hour(dice: &mut Dice) -> u64 {
    7 * 3600 + dice.below(12 * 3600)
}

/// An amount in ten-thousandths that mostly ends in whole cents.
fn price(dice: &mut Dice) -> u64 {
    let most = dice.pick(&[1_000_000_u64, 50_000_000, 900_000_000, 40_000_000_000]);
    let amount = 1000 + dice.below(most);
    if dice.chance(0.03) { amount } else { amount / 100 * 100 }
}
