//! A contract, or (two times in five) a commitment of money without one.

use super::{Records, Slot, hour, price};
use crate::day::Day;
use crate::dice::Dice;
use crate::endpoint::{Endpoint, SYSTEMS};
use crate::json::{Writer, digits};
use crate::key::Key;
use crate::organ::impossible_cnpj;
use crate::words;

const CATEGORIES: [(u64, &str); 5] =
    [(2, "Compras"), (2, "Compras"), (8, "Serviços"), (7, "Obras"), (1, "Cessão")];

pub(super) fn write(records: &Records, writer: &mut Writer, slot: &Slot) {
    let facts = records.facts(slot);
    let mut dice = facts.dice;
    let published = match slot.endpoint {
        // Found by the day of its change, which comes later.
        Endpoint::ContratosAtualizacao => slot.day.plus(-(dice.below(90) as i32)),
        _ => slot.day,
    };
    let system = SYSTEMS[facts.system].1;
    writer.record(|writer| {
        fields(records, writer, facts.key, system, published, slot.day, &mut dice);
    });
}

/// The fields, here and within an instrumento de cobrança.
pub(super) fn fields(
    records: &Records,
    writer: &mut Writer,
    key: Key,
    system: &str,
    published: Day,
    updated: Day,
    dice: &mut Dice,
) {
    let year = key.year.unsigned_abs().into();
    let commitment = dice.chance(0.4);
    let signed = published.plus(-(dice.below(9) as i32));
    let second = hour(dice);
    let parcels = 1 + dice.below(12);
    let total = price(dice);
    let (category, category_name) = dice.pick(&CATEGORIES);
    let start = writer.len();
    writer.text("codigoPaisFornecedor", "BRA");
    writer.pieces("numeroControlePncpCompra", |out| {
        let purchase = Key { sequence: 1 + key.sequence / 2, ..key };
        records.control(out, purchase, b'1');
    });
    writer.text("nomeRazaoSocialFornecedor", words::company(dice));
    writer.int("anoContrato", year);
    writer.nested("tipoContrato", |writer| {
        let (id, name) = if commitment { (7, "Empenho") } else { (1, "Contrato (termo inicial)") };
        writer.int("id", id);
        writer.text("nome", name);
    });
    writer.pieces("numeroContratoEmpenho", |out| {
        digits(out, year, 4);
        out.extend_from_slice(if commitment { b"NE" } else { b"/" });
        digits(out, dice.below(1_000_000), 6);
    });
    writer.date("dataAssinatura", signed);
    writer.date("dataVigenciaInicio", signed);
    writer.date("dataVigenciaFim", signed.plus(30 + dice.below(1000) as i32));
    writer.text("niFornecedor", &impossible_cnpj(70_000_000 + dice.below(9_000_000), 1));
    writer.text("tipoPessoa", "PJ");
    records.entity(writer, key);
    writer.nested("categoriaProcesso", |writer| {
        writer.int("id", category);
        writer.text("nome", category_name);
    });
    writer.time("dataPublicacaoPncp", published, second);
    writer.time("dataAtualizacao", updated, second + 7);
    writer.int("sequencialContrato", key.sequence);
    records.unit(writer, key);
    if dice.chance(0.5) {
        writer.null("informacaoComplementar");
    } else {
        writer.text("informacaoComplementar", "");
    }
    writer.pieces("processo", |out| {
        digits(out, dice.below(100_000), 6);
        out.push(b'/');
        digits(out, year, 4);
    });
    for none in [
        "unidadeSubRogada",
        "orgaoSubRogado",
        "niFornecedorSubContratado",
        "nomeFornecedorSubContratado",
    ] {
        writer.null(none);
    }
    writer.pieces("numeroControlePNCP", |out| records.control(out, key, b'2'));
    writer.flag("receita", dice.chance(0.02));
    writer.int("numeroParcelas", parcels);
    writer.int("numeroRetificacao", dice.below(3));
    writer.null("tipoPessoaSubContratada");
    writer.amount("valorInicial", total);
    writer.amount("valorParcela", total / parcels);
    writer.amount("valorGlobal", total);
    if dice.chance(0.5) {
        writer.null("valorAcumulado");
    } else {
        writer.amount("valorAcumulado", total);
    }
    writer.time("dataAtualizacaoGlobal", updated, second + 7);
    writer.null("identificadorCipi");
    writer.null("urlCipi");
    writer.text("usuarioNome", system);
    let clauses = usize::from(dice.chance(0.2));
    records.subject(writer, "objetoContrato", start, dice, clauses);
}
