//! An ad as the library shows it: nested, one to two kilobytes.

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::fleet::ads::hash;
use crate::fleet::{Ad, Format};

const SENTENCES: [&str; 8] = [
    "Aproveite as condições especiais desta semana em todas as lojas participantes.",
    "Entrega em até dois dias úteis para as capitais; demais regiões sob consulta.",
    "Mais de 10.000 clientes satisfeitos — leia as avaliações e compare!",
    "Parcele em até 12x sem juros no cartão, ou pague com 5% de desconto à vista.",
    "Estoque limitado: quando acabar, acabou. 🛒",
    "Fale com um especialista pelo chat e tire suas dúvidas agora mesmo.",
    "Garantia de 90 dias, troca fácil e devolução sem burocracia.",
    "“O melhor atendimento da cidade”, segundo a pesquisa de 2024.",
];
const CATEGORIES: [&str; 6] =
    ["Varejo", "Educação", "Saúde e beleza", "Serviços", "Eletrônicos", "Alimentos e bebidas"];
const REGIONS: [&str; 6] = ["São Paulo", "Bahia", "Paraná", "Ceará", "Minas Gerais", "Pará"];
const ACTIONS: [(&str, &str); 4] = [
    ("SHOP_NOW", "Comprar agora"),
    ("LEARN_MORE", "Saiba mais"),
    ("SIGN_UP", "Cadastre-se"),
    ("CONTACT_US", "Fale conosco"),
];
const AGES: [&str; 4] = ["18-24", "25-34", "35-54", "55+"];

/// The record of an ad: a pure function of the ad and the seed.
pub(super) fn of(ad: &Ad, seed: u64) -> Value {
    let mut dice = Dice::of(&[seed, hash(&ad.id), 0xAD_2EC0]);
    let mut text = format!("{}.", ad.text);
    for _ in 0..2 + dice.below(4) {
        text.push(' ');
        text.push_str(dice.pick(&SENTENCES));
    }
    let (action, action_text) = dice.pick(&ACTIONS);
    let (spend, views) = (100 * (1 + dice.below(50)), 1000 * (1 + dice.below(200)));
    let page = hash(&ad.page_name) % 10_000_000_000;
    let ended = ad.started_on.checked_add(jiff::Span::new().days(i64::from(ad.days) - 1));
    let host = "https://media.example";
    let media = match ad.format {
        Format::Video => json!([{
            "kind": "video", "url": format!("{host}/{}/hd.mp4", ad.id),
            "preview_url": format!("{host}/{}/preview.jpg", ad.id),
            "seconds": 6 + dice.below(55), "width": 1080, "height": 1920,
        }]),
        Format::Image | Format::All => json!([{
            "kind": "image", "url": format!("{host}/{}/original.jpg", ad.id),
            "preview_url": format!("{host}/{}/small.jpg", ad.id), "width": 1080, "height": 1080,
        }]),
    };
    let audience: Vec<Value> = AGES
        .iter()
        .flat_map(|age| ["female", "male"].map(|gender| (age, gender)))
        .map(|(age, gender)| {
            let share = dice.below(2500) as f64 / 10_000.0;
            json!({ "age": age, "gender": gender, "share": share })
        })
        .collect();
    let first = dice.below(REGIONS.len() as u64) as usize;
    let regions: Vec<Value> = (0..3)
        .map(|step| json!({ "name": REGIONS[(first + step) % REGIONS.len()], "share": dice.below(100) }))
        .collect();
    let platforms = &["feed", "stories", "search"][..=dice.below(3) as usize];
    json!({
        "id": ad.id,
        "page": {
            "id": page.to_string(), "name": ad.page_name, "likes": dice.below(900_000),
            "categories": [dice.pick(&CATEGORIES)], "is_verified": dice.chance(0.3),
        },
        "body": { "title": ad.text, "text": text, "action": action, "action_text": action_text },
        "link_url": ad.link_url,
        "media_type": ad.format,
        "media": media,
        "languages": [ad.language],
        "started_on": ad.started_on,
        "ended_on": ended.ok(),
        "days": ad.days,
        "is_active": dice.chance(0.4),
        "qtd_ads": ad.qtd_ads,
        "platforms": platforms,
        "spend": { "currency": "BRL", "lower": spend, "upper": spend + 99 },
        "impressions": { "lower": views, "upper": views * 2 - 1 },
        "audience": audience,
        "regions": regions,
    })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::fleet::Filters;
    use crate::fleet::ads::Library;

    #[test]
    fn records_are_one_to_two_kilobytes_and_always_the_same() {
        let filters = Filters::day(date(2025, 1, 15), Format::All, "pt");
        let ads = Library::of(7, 200, 0.0).truth(&filters);
        assert!(ads.len() > 50);
        for ad in &ads {
            let record = of(ad, 7);
            let length = record.to_string().len();
            assert!((1000..2200).contains(&length), "{length}");
            assert_eq!(record, of(ad, 7));
            assert_eq!(record["id"], ad.id);
        }
    }
}
