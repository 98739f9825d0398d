//! The words of the records: Portuguese officialese, put together from pieces.
//!
//! The pieces are JSON text already: what must be escaped in a string is.

use crate::dice::Dice;

const OPENINGS: [&str; 8] = [
    "Contratação de empresa especializada para prestação de serviços de ",
    "Aquisição parcelada de ",
    "Registro de preços para eventual e futura aquisição de ",
    "FORNECIMENTO E INSTALAÇÃO DE ",
    "Chamamento público para o credenciamento de interessados em ",
    "Locação, com manutenção inclusa, de ",
    "O presente edital tem por objeto a seleção de proposta para ",
    "Execução indireta, sob regime de empreitada por preço unitário, de ",
];
const THINGS: [&str; 16] = [
    "manutenção preventiva e corretiva de equipamentos de climatização",
    "materiais de expediente e papelaria",
    "gêneros alimentícios perecíveis e não perecíveis",
    "pavimentação em blocos intertravados e drenagem superficial",
    "medicamentos da atenção básica",
    "transporte escolar rural",
    "equipamentos de informática e periféricos",
    "limpeza, conservação e higienização predial",
    "pneus, câmaras de ar e protetores",
    "exames laboratoriais de média complexidade",
    "mobiliário para salas de aula",
    "combustíveis e lubrificantes automotivos",
    "sistema integrado de gestão pública em nuvem",
    "iluminação pública com luminárias de LED",
    "apresentações artísticas e intervenções culturais",
    "uniformes e equipamentos de proteção individual",
];
const PURPOSES: [&str; 8] = [
    ", destinados às unidades da rede municipal de ensino",
    ", em atendimento à demanda da Secretaria de Obras e Viação",
    ", para uso da frota própria e da frota conveniada",
    ", visando à continuidade dos serviços de saúde",
    ", com entrega fracionada no almoxarifado central",
    " — ampla concorrência, com cota reservada a microempresas e empresas de pequeno porte",
    ", incluindo mão de obra, insumos e encargos sociais",
    ", conforme cronograma físico-financeiro anexo",
];
const CLAUSES: [&str; 10] = [
    ", pelo período de 12 (doze) meses, prorrogável na forma da lei",
    ", conforme condições, quantidades e exigências estabelecidas no Termo de Referência",
    ", observadas as especificações do Anexo I — “Memorial descritivo”",
    ".\\r\\nRecursos próprios e de transferências voluntárias",
    ", nos termos da Lei nº 14.133, de 1º de abril de 2021",
    ", com critério de julgamento de menor preço por item",
    ", inclusos frete, carga e descarga no local indicado pela Administração",
    ", incluindo \\\"as built\\\" e anotação de responsabilidade técnica",
    ", mediante ordem de fornecimento emitida pelo setor de compras",
    ", excluídas as parcelas já contratadas em exercícios anteriores",
];
const COMPANIES: [&str; 8] = [
    "COMERCIAL CEDRO EXEMPLO LTDA",
    "DISTRIBUIDORA VENTO SUL FICTICIA ME",
    "CONSTRUTORA PEDRA LISA EXEMPLO S.A.",
    "PAPELARIA TRES RIOS IMAGINARIA LTDA",
    "TRANSPORTES SERRA AZUL EXEMPLO EIRELI",
    "CLINICA BOA AURORA FICTICIA LTDA",
    "ASSOCIACAO CULTURAL RIBEIRA IMAGINARIA",
    "TECNOLOGIA QUATI EXEMPLO SOLUCOES LTDA",
];

/// What is bought: a sentence, with this many clauses at its end.
pub(crate) fn subject(out: &mut Vec<u8>, dice: &mut Dice, clauses: usize) {
    for piece in [dice.pick(&OPENINGS), dice.pick(&THINGS)] {
        out.extend_from_slice(piece.as_bytes());
    }
    if clauses > 0 {
        out.extend_from_slice(dice.pick(&PURPOSES).as_bytes());
    }
    // Each clause at most once, in an order that differs.
    let first = dice.below(CLAUSES.len() as u64) as usize;
    for index in 0..clauses {
        out.extend_from_slice(CLAUSES[(first + index * 3) % CLAUSES.len()].as_bytes());
    }
    out.push(b'.');
}

/// A sentence that goes on until the text is about as long as wanted.
pub(crate) fn long_subject(out: &mut Vec<u8>, dice: &mut Dice, length: usize) {
    let start = out.len();
    let mut index = dice.below(CLAUSES.len() as u64) as usize;
    while out.len() - start + 60 < length {
        out.extend_from_slice(CLAUSES[index % CLAUSES.len()].as_bytes());
        index += 1;
    }
}

pub(crate) fn thing(dice: &mut Dice) -> &'static str {
    dice.pick(&THINGS)
}

pub(crate) fn company(dice: &mut Dice) -> &'static str {
    dice.pick(&COMPANIES)
}
