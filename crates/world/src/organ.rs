//! The organs that publish: invented, in states that exist.
//!
//! Their CNPJ numbers have the right length and wrong check digits on purpose: nobody can have them.

use crate::dice::Dice;
use crate::key::ORGANS;

const STATES: [(&str, &str, u32); 27] = [
    ("AC", "Acre", 12),
    ("AL", "Alagoas", 27),
    ("AM", "Amazonas", 13),
    ("AP", "Amapá", 16),
    ("BA", "Bahia", 29),
    ("CE", "Ceará", 23),
    ("DF", "Distrito Federal", 53),
    ("ES", "Espírito Santo", 32),
    ("GO", "Goiás", 52),
    ("MA", "Maranhão", 21),
    ("MG", "Minas Gerais", 31),
    ("MS", "Mato Grosso do Sul", 50),
    ("MT", "Mato Grosso", 51),
    ("PA", "Pará", 15),
    ("PB", "Paraíba", 25),
    ("PE", "Pernambuco", 26),
    ("PI", "Piauí", 22),
    ("PR", "Paraná", 41),
    ("RJ", "Rio de Janeiro", 33),
    ("RN", "Rio Grande do Norte", 24),
    ("RO", "Rondônia", 11),
    ("RR", "Roraima", 14),
    ("RS", "Rio Grande do Sul", 43),
    ("SC", "Santa Catarina", 42),
    ("SE", "Sergipe", 28),
    ("SP", "São Paulo", 35),
    ("TO", "Tocantins", 17),
];

const FRONT: [&str; 10] =
    ["Nova", "Porto", "Serra", "Vila", "Alto", "Campo", "Barra", "Lagoa", "Monte", "Vale"];
const MIDDLE: [&str; 10] =
    ["Jaru", "Taqui", "Mirã", "Caruã", "Pira", "Guaí", "Itaú", "Xerê", "Botu", "Urucê"];
const BACK: [&str; 10] =
    ["rena", "belo", "tuba-mor", "çaba", "vira", "lândia-mirim", "nhema", "pora", "quara", "dão"];
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("MUNICIPIO DE ", "Prefeitura Municipal de ", "N", "M"),
    ("FUNDO MUNICIPAL DE SAUDE DE ", "Secretaria Municipal de Saúde de ", "E", "M"),
    ("CAMARA MUNICIPAL DE ", "Câmara Municipal de ", "L", "M"),
    ("INSTITUTO ESTADUAL DE ENSINO DE ", "Unidade Administrativa de ", "E", "E"),
];

/// One that publishes.
#[derive(Clone, Debug)]
pub(crate) struct Organ {
    pub(crate) cnpj: String,
    pub(crate) name: String,
    pub(crate) power: &'static str,
    pub(crate) sphere: &'static str,
    pub(crate) unit_code: String,
    pub(crate) unit_name: String,
    pub(crate) state: &'static str,
    pub(crate) state_name: &'static str,
    pub(crate) town: String,
    pub(crate) town_code: String,
}

/// All organs of a world.
pub(crate) fn all(seed: u64) -> Vec<Organ> {
    (0..ORGANS).map(|number| organ(seed, number)).collect()
}

fn organ(seed: u64, number: u64) -> Organ {
    let mut dice = Dice::of(&[seed, number, 0x0264]);
    let (state, state_name, state_code) = dice.pick(&STATES);
    let town = format!("{} {}{}", dice.pick(&FRONT), dice.pick(&MIDDLE), dice.pick(&BACK));
    let (name, unit, power, sphere) = dice.pick(&KINDS);
    Organ {
        cnpj: impossible_cnpj(mix_root(seed, number), 1),
        name: format!("{name}{}", plain(&town)),
        power,
        sphere,
        unit_code: format!("{}", 100 + dice.below(900_000)),
        unit_name: format!("{unit}{town} - {state}"),
        state,
        state_name,
        town_code: format!("{state_code}{:05}", 10_000 + dice.below(90_000)),
        town,
    }
}

/// Eight digits, another for each organ.
fn mix_root(seed: u64, number: u64) -> u64 {
    // An odd multiplier permutes the numbers below a power of two.
    10_000_000 + (number * 5167 + seed % ORGANS) % ORGANS * 9973
}

/// Fourteen digits whose last two do not check.
pub(crate) fn impossible_cnpj(root: u64, branch: u64) -> String {
    let body = format!("{root:08}{branch:04}");
    let first = check(&body);
    let second = check(&format!("{body}{first}"));
    format!("{body}{}{second}", (first + 1) % 10)
}

fn check(body: &str) -> u32 {
    let weighted = body.bytes().rev().zip((2..=9).cycle());
    let sum: u32 = weighted.map(|(digit, weight)| u32::from(digit - b'0') * weight).sum();
    if sum % 11 < 2 { 0 } else { 11 - sum % 11 }
}

/// Capitals without accents, as registers have names.
fn plain(text: &str) -> String {
    let strip = |letter: char| match letter {
        'ã' | 'á' | 'â' => 'A',
        'ç' => 'C',
        'ê' | 'é' => 'E',
        'í' => 'I',
        'ú' => 'U',
        other => other.to_ascii_uppercase(),
    };
    text.chars().map(strip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_organ_has_its_own_number_and_none_is_a_real_one() {
        let organs = all(3);
        let numbers: HashSet<&str> = organs.iter().map(|organ| organ.cnpj.as_str()).collect();
        assert_eq!(numbers.len() as u64, ORGANS);
        for number in numbers {
            assert_eq!(number.len(), 14);
            assert_ne!(check(&number[..12]), u32::from(number.as_bytes()[12] - b'0'));
        }
    }
}
