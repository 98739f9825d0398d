//! A procurement: one modalidade, one subject, dates between which proposals are taken.

use super::{Records, Slot, hour, price};
use crate::endpoint::{Endpoint, SYSTEMS};
use crate::json::{Writer, digits};

const MODALITIES: [&str; 14] = [
    "Leilão - Eletrônico",
    "Diálogo Competitivo",
    "Concurso",
    "Concorrência - Eletrônica",
    "Concorrência - Presencial",
    "Pregão - Eletrônico",
    "Pregão - Presencial",
    "Dispensa",
    "Inexigibilidade",
    "Manifestação de Interesse",
    "Pré-qualificação",
    "Credenciamento",
    "Leilão - Presencial",
    "Inaplicabilidade da Licitação",
];
const DISPUTES: [&str; 6] = [
    "Aberto",
    "Fechado",
    "Aberto-Fechado",
    "Dispensa Com Disputa",
    "Não se aplica",
    "Fechado-Aberto",
];
const GROUNDS: [(&str, &str); 4] = [
    (
        "Lei 14.133/2021, Art. 28, I",
        "disputa por lances sucessivos para bens e serviços comuns, julgada pelo menor preço ou pelo maior desconto",
    ),
    (
        "Lei 14.133/2021, Art. 28, II ",
        "disputa entre interessados para bens e serviços especiais e para obras e serviços comuns e especiais de engenharia",
    ),
    (
        "Lei 14.133/2021, Art. 75, II",
        "contratação direta de pequeno valor para outros serviços e compras, nos limites atualizados a cada exercício",
    ),
    (
        "Lei 14.133/2021, Art. 74, caput",
        "contratação direta por ser inviável a competição entre fornecedores do objeto pretendido",
    ),
];
const STATES: [(u64, &str); 4] =
    [(1, "Divulgada no PNCP"), (1, "Divulgada no PNCP"), (2, "Revogada"), (3, "Anulada")];

pub(super) fn write(records: &Records, writer: &mut Writer, slot: &Slot) {
    object(records, writer, slot, false);
}

pub(super) fn write_single(records: &Records, writer: &mut Writer, slot: &Slot) {
    object(records, writer, slot, true);
}

fn object(records: &Records, writer: &mut Writer, slot: &Slot, single: bool) {
    let facts = records.facts(slot);
    let (key, mut dice) = (facts.key, facts.dice);
    let dice = &mut dice;
    let year = key.year.unsigned_abs().into();
    let second = hour(dice);
    let (published, updated, closes) = match slot.endpoint {
        Endpoint::ContratacoesAtualizacao => {
            let published = slot.day.plus(-(dice.below(60) as i32));
            (published, slot.day, published.plus(20))
        }
        Endpoint::ContratacoesProposta => {
            let published = slot.day.plus(-30 - dice.below(20) as i32);
            (published, published, slot.day)
        }
        _ => (slot.day, slot.day, slot.day.plus(8 + dice.below(40) as i32)),
    };
    let (state, state_name) = dice.pick(&STATES);
    let (ground, ground_text) = dice.pick(&GROUNDS);
    let estimate = price(dice);
    let start = writer.len();
    writer.record(|writer| {
        writer.pieces("numeroControlePNCP", |out| records.control(out, key, b'1'));
        writer.flag("srp", dice.chance(0.3));
        records.entity(writer, key);
        writer.int("anoCompra", year);
        writer.int("sequencialCompra", key.sequence);
        writer.time("dataInclusao", published, second);
        writer.time("dataPublicacaoPncp", published, second);
        writer.time("dataAtualizacao", updated, second);
        writer.pieces("numeroCompra", |out| digits(out, 1 + dice.below(900), 1));
        records.unit(writer, key);
        writer.nested("amparoLegal", |writer| {
            writer.text("descricao", ground_text);
            writer.text("nome", ground);
            writer.int("codigo", 1 + dice.below(50));
        });
        writer.time("dataAberturaProposta", published, 8 * 3600);
        writer.time("dataEncerramentoProposta", closes, 8 * 3600 + 59 * 60);
        if dice.chance(0.4) {
            writer.null("informacaoComplementar");
        } else {
            writer
                .text("informacaoComplementar", "Edital e anexos disponíveis no portal do órgão.");
        }
        writer.pieces("processo", |out| {
            digits(out, dice.below(10_000), 3);
            out.push(b'/');
            digits(out, year, 4);
        });
        if dice.chance(0.5) {
            writer.null("linkSistemaOrigem");
        } else {
            writer.pieces("linkSistemaOrigem", |out| {
                out.extend_from_slice(b"https://compras.exemplo.invalid/processo?id=");
                digits(out, dice.roll() >> 20, 1);
            });
        }
        writer.text("justificativaPresencial", "");
        writer.null("unidadeSubRogada");
        writer.null("orgaoSubRogado");
        if dice.chance(0.6) {
            writer.null("valorTotalHomologado");
        } else {
            writer.amount("valorTotalHomologado", estimate / 200 * 180);
        }
        writer.int("modoDisputaId", facts.dispute.into());
        writer.text("modoDisputaNome", DISPUTES[usize::from(facts.dispute - 1) % DISPUTES.len()]);
        writer.int("modalidadeId", slot.fan.into());
        writer.text(
            "modalidadeNome",
            MODALITIES[usize::from(slot.fan.saturating_sub(1)) % MODALITIES.len()],
        );
        writer.null("linkProcessoEletronico");
        writer.time("dataAtualizacaoGlobal", updated, second);
        writer.amount("valorTotalEstimado", estimate);
        writer.int("tipoInstrumentoConvocatorioCodigo", 1);
        writer.text("tipoInstrumentoConvocatorioNome", "Edital");
        writer.list("fontesOrcamentarias", 0, |_, _| {});
        writer.int("situacaoCompraId", state);
        writer.text("situacaoCompraNome", state_name);
        writer.text("usuarioNome", SYSTEMS[facts.system].1);
        if single {
            writer.int("orcamentoSigilosoCodigo", 1);
            writer.text("orcamentoSigilosoDescricao", "Compra sem sigilo");
            writer.flag("existeResultado", false);
        }
        let clauses = 1 + dice.below(3) as usize;
        records.subject(writer, "objetoCompra", start, dice, clauses);
    });
}
