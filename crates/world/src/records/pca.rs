//! Yearly plans. Their lists count items and cut pages between them, so that an element of `data`
//! is a plan with those of its items that fall on the page.

use super::{Records, Slot, hour};
use crate::endpoint::{CLASSES, Endpoint};
use crate::json::{Writer, digits};
use crate::words;

/// Items that a plan has.
pub(super) const ITEMS: u64 = 40;

pub(super) fn item_number(slot: &Slot) -> u64 {
    slot.number % ITEMS + 1
}

/// How many of the first slots are of one plan.
pub(super) fn same_plan(slots: &[Slot]) -> usize {
    let plan = |slot: &Slot| (slot.fan, slot.day, slot.number / ITEMS);
    let Some(first) = slots.first().map(plan) else { return 0 };
    slots.iter().take_while(|slot| plan(slot) == first).count()
}

/// A plan with these items, which are all its own and at least one.
pub(super) fn write(records: &Records, writer: &mut Writer, slots: &[Slot]) {
    let Some(first) = slots.first() else { return };
    let key = records.facts(first).key;
    let organ = records.organ(key);
    let year: u64 = key.year.unsigned_abs().into();
    let updated = match first.endpoint {
        Endpoint::PcaAtualizacao => first.day,
        _ => first.day.plus((first.number / ITEMS % 120) as i32),
    };
    writer.record(|writer| {
        writer.list("itens", slots.len(), |writer, index| {
            let slot = &slots[index];
            let facts = records.facts(slot);
            let mut dice = facts.dice;
            let second = hour(&mut dice);
            let (class, class_name) = CLASSES[facts.class];
            let service = class_name.starts_with("SERVIÇOS");
            let (kind, kind_number) = if service { ("Serviço", 2) } else { ("Material", 1) };
            let (quantity, unit) = (1 + dice.below(500), 100 * (1 + dice.below(1_000_000)));
            writer.text("descricaoItem", words::thing(&mut dice));
            writer.text("nomeClassificacaoCatalogo", kind);
            writer.amount("quantidadeEstimada", quantity * 10_000);
            writer.null("pdmCodigo");
            writer.time("dataInclusao", updated, second);
            writer.int("numeroItem", item_number(slot));
            writer.time("dataAtualizacao", updated, second);
            writer.amount("valorTotal", quantity * unit);
            writer.null("pdmDescricao");
            writer.pieces("codigoItem", |out| digits(out, dice.below(500_000), 1));
            writer.null("unidadeRequisitante");
            writer.null("grupoContratacaoCodigo");
            writer.null("grupoContratacaoNome");
            writer.pieces("classificacaoSuperiorCodigo", |out| digits(out, class.into(), 4));
            writer.text("classificacaoSuperiorNome", class_name);
            writer.text("unidadeFornecimento", "UNIDADE");
            writer.amount("valorUnitario", unit);
            writer.amount("valorOrcamentoExercicio", quantity * unit);
            writer.date("dataDesejada", updated.plus(30 + dice.below(200) as i32));
            writer.text("categoriaItemPcaNome", kind);
            writer.int("classificacaoCatalogoId", kind_number);
        });
        writer.text("codigoUnidade", &organ.unit_code);
        writer.text("nomeUnidade", &organ.unit_name);
        writer.int("anoPca", year);
        writer.text("orgaoEntidadeRazaoSocial", &organ.name);
        writer.text("orgaoEntidadeCnpj", &organ.cnpj);
        writer.pieces("idPcaPncp", |out| records.control(out, key, b'0'));
        writer.time("dataPublicacaoPNCP", updated, 7 * 3600);
        writer.time("dataAtualizacaoGlobalPCA", updated, 8 * 3600);
    });
}
