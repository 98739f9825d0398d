//! A bill: a fiscal note as an object, the same note once more as JSON within a string, and the
//! whole contract it is paid under.

use super::{Records, Slot, contrato, hour};
use crate::day::Day;
use crate::dice::Dice;
use crate::endpoint::SYSTEMS;
use crate::json::{Order, Writer, digits, quoted};
use crate::organ::{Organ, impossible_cnpj};
use crate::words;

const KINDS: [&str; 4] = [
    "Nota Fiscal Eletrônica (NF-e)",
    "Nota Fiscal de Serviços Eletrônica (NFS-e)",
    "Fatura",
    "Recibo de Pagamento a Autônomo",
];

/// What both forms of the note say.
struct Note<'a> {
    id: u64,
    number: u64,
    access: String,
    day: Day,
    supplier: String,
    supplier_name: &'static str,
    organ: &'a Organ,
    item: &'static str,
    quantity: String,
    unit_price: String,
    total: String,
}

pub(super) fn write(records: &Records, writer: &mut Writer, slot: &Slot) {
    let facts = records.facts(slot);
    let (key, mut dice) = (facts.key, facts.dice);
    let dice = &mut dice;
    let (day, second) = (slot.day, hour(dice));
    let note = note(records.organ(key), day, dice);
    let kind = usize::from(facts.instrument - 1) % KINDS.len();
    writer.record(|writer| {
        writer.text("cnpj", &note.organ.cnpj);
        writer.int("ano", key.year.unsigned_abs().into());
        writer.int("sequencialContrato", key.sequence);
        writer.int("sequencialInstrumentoCobranca", 1);
        writer.nested("tipoInstrumentoCobranca", |writer| {
            writer.int("id", facts.instrument.into());
            writer.text("nome", KINDS[kind]);
            writer.text("descricao", "Documento digital que comprova, para fins fiscais, uma operação de circulação de mercadorias ou uma prestação de serviços entre as partes. A validade jurídica decorre da assinatura digital de quem o emite, que garante autoria e integridade, e da autorização de uso dada pela administração tributária antes da ocorrência do fato gerador.");
            writer.text("dataInclusao", "2025-02-03T10:00:00");
            writer.text("dataAtualizacao", "2025-02-03T10:00:00");
            writer.flag("statusAtivo", true);
        });
        writer.pieces("numeroInstrumentoCobranca", |out| digits(out, note.number, 1));
        writer.date("dataEmissaoDocumento", note.day);
        writer.null("observacao");
        writer.text("chaveNFe", &note.access);
        writer.int("fonteNFe", 1);
        writer.time("dataConsultaNFe", day, second);
        writer.text("statusResponseNFe", "200");
        writer.pieces("jsonResponseNFe", |out| {
            let mut text = Vec::with_capacity(2048);
            quoted(&mut text, &String::from_utf8_lossy(&response(&note)));
            out.extend_from_slice(&text[1..text.len() - 1]);
        });
        writer.nested("notaFiscalEletronica", |writer| object(writer, &note, day, second));
        writer.time("dataInclusao", day, second);
        writer.time("dataAtualizacao", day, second);
        writer.nested("recuperarContratoDTO", |writer| {
            let (system, before) = (SYSTEMS[facts.system].1, day.plus(-40));
            contrato::fields(records, writer, key, system, before, day, dice);
        });
    });
}

fn note<'a>(organ: &'a Organ, day: Day, dice: &mut Dice) -> Note<'a> {
    let (quantity, cents) = (1 + dice.below(9000), 10 + dice.below(90_000));
    let root = 70_000_000 + dice.below(9_000_000);
    let access = format!("{:022}{:022}", dice.roll(), dice.roll());
    Note {
        id: 200_000_000 + dice.below(90_000_000),
        number: 1 + dice.below(90_000),
        access,
        day: day.plus(-(dice.below(40) as i32)),
        supplier: impossible_cnpj(root, 1),
        supplier_name: words::company(dice),
        organ,
        item: words::thing(dice),
        quantity: brazilian(quantity * 100),
        unit_price: brazilian(cents),
        total: brazilian(quantity * cents),
    }
}

/// Hundredths as the notes write them: `4.920,00`.
fn brazilian(hundredths: u64) -> String {
    let whole = (hundredths / 100).to_string();
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push('.');
        }
        text.push(digit);
    }
    format!("{text},{:02}", hundredths % 100)
}

fn slashed(day: Day) -> String {
    let (year, month, of_month) = day.civil();
    format!("{of_month:02}/{month:02}/{year:04}")
}

/// The string is data: its keys do not change places with the rest.
fn response(note: &Note<'_>) -> Vec<u8> {
    let mut writer = Writer::new(Order::Written, 2048);
    writer.record(|writer| {
        writer.nested("notaFiscalDTO", |writer| {
            writer.int("id", note.id);
            writer.text("codigoOrgaoSuperiorDestinatario", &note.organ.unit_code);
            writer.text("orgaoSuperiorDestinatario", &note.organ.name);
            writer.text("codigoOrgaoDestinatario", &note.organ.unit_code);
            writer.text("orgaoDestinatario", &note.organ.unit_name);
            writer.text("nomeFornecedor", note.supplier_name);
            writer.text("cnpjFornecedor", &note.supplier);
            writer.text("municipioFornecedor", &note.organ.town);
            writer.text("chaveNotaFiscal", &note.access);
            writer.text("valorNotaFiscal", &note.total);
            writer.text("tipoEventoMaisRecente", "Autorização de Uso");
            writer.text("dataTipoEventoMaisRecente", &format!("{} 14:30:57", slashed(note.day)));
            writer.text("dataEmissao", &slashed(note.day));
            writer.int("numero", note.number);
            writer.int("serie", 1);
        });
        writer.list("itensNotaFiscal", 1, |writer, _| {
            item(writer, note, ["numeroProduto", "codigoNcmSh", "ncmSh", "valor"]);
        });
        writer.list("eventosNotaFiscal", 0, |_, _| {});
    });
    writer.finish()
}

fn object(writer: &mut Writer, note: &Note<'_>, day: Day, second: u64) {
    writer.int("instrumentoCobrancaId", 1);
    writer.text("chave", &note.access);
    writer.int("nfTransparenciaID", note.id);
    writer.int("numero", note.number);
    writer.int("serie", 1);
    writer.text("dataEmissao", &slashed(note.day));
    writer.text("niEmitente", &note.supplier);
    writer.text("nomeEmitente", note.supplier_name);
    writer.text("nomeMunicipioEmitente", &note.organ.town);
    writer.text("codigoOrgaoDestinatario", &note.organ.unit_code);
    writer.text("nomeOrgaoDestinatario", &note.organ.unit_name);
    writer.text("codigoOrgaoSuperiorDestinatario", &note.organ.unit_code);
    writer.text("nomeOrgaoSuperiorDestinatario", &note.organ.name);
    writer.text("valorNotaFiscal", &note.total);
    writer.text("tipoEventoMaisRecente", "Autorização de Uso");
    writer.text("dataTipoEventoMaisRecente", &format!("{} 14:30:57", slashed(note.day)));
    writer.time("dataInclusao", day, second);
    writer.time("dataAtualizacao", day, second);
    writer.list("itens", 1, |writer, _| {
        item(writer, note, ["numeroItem", "codigoNCM", "descricaoNCM", "valorTotal"]);
    });
    writer.list("eventos", 0, |_, _| {});
}

/// The one item, with the names that differ between the two forms.
fn item(writer: &mut Writer, note: &Note<'_>, names: [&'static str; 4]) {
    let [number, code, description, total] = names;
    writer.text(number, "1");
    writer.text("descricaoProdutoServico", note.item);
    writer.text(code, "30059000");
    writer.text(description, "Outros artigos e preparações não especificados em posição própria");
    writer.text("cfop", "6102");
    writer.text("quantidade", &note.quantity);
    writer.text("unidade", "UN");
    writer.text("valorUnitario", &note.unit_price);
    writer.text(total, &note.total);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_notes_are_written_as_in_brazil() {
        assert_eq!(brazilian(492_000), "4.920,00");
        assert_eq!(brazilian(82), "0,82");
        assert_eq!(brazilian(123_456_789), "1.234.567,89");
    }
}
