//! A price register. It is in force for a year from its day, which is what its list looks at.

use super::{Records, Slot};
use crate::endpoint::{Endpoint, SYSTEMS};
use crate::json::{Writer, digits};
use crate::truth::IN_FORCE;

pub(super) fn write(records: &Records, writer: &mut Writer, slot: &Slot) {
    let facts = records.facts(slot);
    let (key, mut dice) = (facts.key, facts.dice);
    let dice = &mut dice;
    let begins = match slot.endpoint {
        Endpoint::AtasAtualizacao => slot.day.plus(-(dice.below(200) as i32)),
        _ => slot.day,
    };
    let updated = slot.day;
    let organ = records.organ(key);
    let start = writer.len();
    writer.record(|writer| {
        writer.pieces("numeroControlePNCPAta", |out| records.ata_control(out, key));
        writer.pieces("numeroAtaRegistroPreco", |out| digits(out, 1 + dice.below(400), 5));
        writer.int("anoAta", key.year.unsigned_abs().into());
        writer.pieces("numeroControlePNCPCompra", |out| records.control(out, key, b'1'));
        let cancelled = dice.chance(0.01);
        writer.flag("cancelado", cancelled);
        if cancelled {
            writer.date("dataCancelamento", updated);
        } else {
            writer.null("dataCancelamento");
        }
        writer.date("dataAssinatura", begins.plus(-(dice.below(10) as i32)));
        writer.date("vigenciaInicio", begins);
        writer.date("vigenciaFim", begins.plus(IN_FORCE - 1));
        writer.date("dataPublicacaoPncp", begins);
        writer.date("dataInclusao", begins);
        writer.date("dataAtualizacao", updated);
        writer.date("dataAtualizacaoGlobal", updated);
        writer.text("usuario", SYSTEMS[facts.system].1);
        writer.text("cnpjOrgao", &organ.cnpj);
        writer.text("nomeOrgao", &organ.name);
        writer.null("cnpjOrgaoSubrogado");
        writer.null("nomeOrgaoSubrogado");
        writer.text("codigoUnidadeOrgao", &organ.unit_code);
        writer.text("nomeUnidadeOrgao", &organ.unit_name);
        writer.null("codigoUnidadeOrgaoSubrogado");
        writer.null("nomeUnidadeOrgaoSubrogado");
        let clauses = dice.below(3) as usize;
        records.subject(writer, "objetoContratacao", start, dice, clauses);
    });
}
