//! What a demonstration does: three months of an API, and 24 missions. It also says what must be there
//! afterwards, because the world is made from a seed.

use jiff::civil::{Date, date};
use lavra_extract::task::Order;
use lavra_fleet::bank::{Every, Wanted};
use lavra_fleet::model::MediaType;
use lavra_world::fleet::{Filters, Format};

/// How much of it there is.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// The share of the real volumes that the API has.
    pub(super) scale: f64,
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) endpoints: &'static [&'static str],
    /// Ads of one day, media type and language, on average.
    pub(super) ads: u64,
    pub(super) days: (Date, Date),
    pub(super) languages: &'static [&'static str],
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 7,
            scale: 0.012,
            from: "2025-02",
            to: "2025-04",
            endpoints: &[
                "contratos_publicacao",
                "contratacoes_publicacao",
                "atas_atualizacao",
                "instrumentoscobranca_inclusao",
            ],
            ads: 120,
            days: (date(2025, 3, 3), date(2025, 3, 6)),
            languages: &["pt", "en", "es"],
        }
    }
}

impl Plan {
    /// The extraction, of the API at `base_url`.
    pub(super) fn order(&self, base_url: &str) -> anyhow::Result<Order> {
        Ok(Order {
            source: "pncp".into(),
            definition: None,
            from: self.from.parse()?,
            to: self.to.parse()?,
            endpoints: self.endpoints.iter().map(|name| (*name).to_owned()).collect(),
            refresh: false,
            retry: false,
            base_url: Some(base_url.to_owned()),
        })
    }

    /// The missions: a day, a media type and a language each.
    pub(super) fn missions(&self) -> Wanted {
        Wanted {
            from: self.days.0,
            to: self.days.1,
            every: Every::Day,
            media_types: vec![MediaType::Video, MediaType::Image],
            languages: self.languages.iter().map(|name| vec![(*name).to_owned()]).collect(),
        }
    }
}

/// What a mission looks for, as the world has it.
pub(super) fn filters(mission: &lavra_fleet::model::Mission) -> Filters {
    Filters {
        start: mission.date_start,
        end: mission.date_end,
        format: match mission.media_type {
            MediaType::All => Format::All,
            MediaType::Video => Format::Video,
            MediaType::Image => Format::Image,
        },
        languages: mission.languages.clone(),
    }
}
