//! The ads that scrapes find: a pure function of the seed and the filters.
//!
//! Ads belong to a cell of a day, a format and a language. Every fourth ad of a cell runs on into the next
//! day, so that the missions of two days in a row share some, as missions do whose windows, formats or
//! languages overlap. How many there are is known without making them.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::FleetConfig;
use crate::day::Day;
use crate::dice::{Dice, mix};

/// What a scrape looks for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Filters {
    pub start: Date,
    pub end: Date,
    pub format: Format,
    /// Without any, those of the ads that are there: `pt`, `en` and `es`.
    pub languages: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    All,
    Video,
    Image,
}

/// One ad, as it stands in the results.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Ad {
    pub id: String,
    pub page_name: String,
    pub text: String,
    pub format: Format,
    pub language: String,
    pub started_on: Date,
    pub days: u32,
    /// How many ads share its creative: what the results are sorted by, from the most.
    pub qtd_ads: u32,
    pub link_url: String,
}

/// The most days of a window.
pub(crate) const LONGEST: i32 = 3660;
const SPOKEN: [&str; 3] = ["pt", "en", "es"];
const RUNS_ON: u64 = 4;

impl Filters {
    /// Those of one day, in one language.
    pub fn day(day: Date, format: Format, language: &str) -> Self {
        Self { start: day, end: day, format, languages: vec![language.to_owned()] }
    }

    /// The `filters` of `POST /scrape`.
    pub(super) fn parse(body: &Value) -> Result<Self, String> {
        let filters = body.get("filters").ok_or("filters are missing")?;
        let date = |name: &str| {
            let text = filters.get("date_range").and_then(|range| range.get(name)?.as_str());
            let date = text.and_then(|text| text.parse::<Date>().ok());
            date.ok_or_else(|| format!("filters.date_range.{name} must be a date, YYYY-MM-DD"))
        };
        let format = match filters.get("format") {
            None | Some(Value::Null) => Format::All,
            Some(format) => Format::deserialize(format)
                .map_err(|_| "filters.format must be all, video or image")?,
        };
        let languages = match filters.get("languages") {
            None | Some(Value::Null) => Vec::new(),
            Some(list) => {
                Vec::deserialize(list).map_err(|_| "filters.languages must be a list of texts")?
            }
        };
        let filters = Self { start: date("start")?, end: date("end")?, format, languages };
        if filters.end < filters.start {
            return Err("filters.date_range ends before it starts".into());
        }
        if Day::from(filters.start).until(Day::from(filters.end)) >= LONGEST {
            return Err(format!("filters.date_range has more than {LONGEST} days"));
        }
        Ok(filters)
    }

    fn formats(&self) -> &'static [Format] {
        match self.format {
            Format::All => &[Format::Video, Format::Image],
            Format::Video => &[Format::Video],
            Format::Image => &[Format::Image],
        }
    }

    fn spoken(&self) -> Vec<&str> {
        let mut languages: Vec<&str> = self.languages.iter().map(String::as_str).collect();
        languages.sort_unstable();
        languages.dedup();
        if languages.is_empty() { SPOKEN.to_vec() } else { languages }
    }

    /// The days, no more than are ever scraped at once.
    fn window(&self) -> (Day, Day) {
        let (first, last) = (Day::from(self.start), Day::from(self.end));
        (first, if first.until(last) < LONGEST { last } else { first.plus(LONGEST - 1) })
    }
}

/// All the ads there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    seed: u64,
    ads: u64,
    empty: f64,
}

/// A day, a format and a language.
#[derive(Clone, Copy)]
struct Cell<'a> {
    day: Day,
    format: Format,
    language: &'a str,
}

impl Library {
    pub(super) const fn new(seed: u64, config: &FleetConfig) -> Self {
        Self::of(seed, config.ads, config.empty)
    }

    /// So many ads a cell on average, and none at all in a share of them.
    pub(crate) const fn of(seed: u64, ads: u64, empty: f64) -> Self {
        Self { seed, ads, empty }
    }

    /// How many ads a scrape finds.
    pub(crate) fn count(&self, filters: &Filters) -> u64 {
        let (first, last) = filters.window();
        let mut count = 0;
        for language in filters.spoken() {
            for format in filters.formats() {
                let of = |day| self.size(Cell { day, format: *format, language });
                count += of(first.plus(-1)).div_ceil(RUNS_ON);
                count += first.through(last).map(of).sum::<u64>();
            }
        }
        count
    }

    /// The ads that a scrape finds, in their order.
    pub(crate) fn truth(&self, filters: &Filters) -> Vec<Ad> {
        let (first, last) = filters.window();
        let mut ads = Vec::new();
        for language in filters.spoken() {
            for format in filters.formats() {
                for day in first.plus(-1).through(last) {
                    let cell = Cell { day, format: *format, language };
                    let numbers =
                        (0..self.size(cell)).filter(|number| day >= first || runs_on(*number));
                    ads.extend(numbers.map(|number| self.ad(cell, number)));
                }
            }
        }
        ads.sort_by(|one, other| (other.qtd_ads, &one.id).cmp(&(one.qtd_ads, &other.id)));
        ads
    }

    fn size(&self, cell: Cell<'_>) -> u64 {
        let Self { seed, ads, empty } = *self;
        let kind = mix(hash(cell.language) ^ cell.format as u64);
        let block = cell.day.number().div_euclid(4) as u64;
        if ads == 0 || Dice::of(&[seed, kind, block, 0xADE0]).chance(empty) {
            return 0;
        }
        1 + Dice::of(&[seed, kind, cell.day.number() as u64, 0xADC0]).below(2 * ads - 1)
    }

    fn ad(&self, cell: Cell<'_>, number: u64) -> Ad {
        let Cell { day, format, language } = cell;
        let kind = mix(hash(language) ^ format as u64);
        let mut dice = Dice::of(&[self.seed, kind, day.number() as u64, number, 0xAD]);
        let (id, page) = (dice.roll(), dice.below(5000));
        let (year, month, of_month) = day.civil();
        let offer =
            dice.pick(&["Frete grátis", "Só hoje", "Compre 2, leve 3", "Novo", "Últimas unidades"]);
        let thing = dice.pick(&["tênis", "cursos", "café", "celulares", "óculos", "livros"]);
        Ad {
            id: format!("ad_{id:016x}"),
            page_name: format!("Página {page}"),
            text: format!("{offer}: {thing}"),
            format,
            language: language.to_owned(),
            started_on: Date::new(year as i16, month as i8, of_month as i8).unwrap_or_default(),
            days: 1 + u32::from(runs_on(number)),
            qtd_ads: 1 + dice.below(60) as u32,
            link_url: format!("https://shop{page}.example/{id:08x}"),
        }
    }
}

const fn runs_on(number: u64) -> bool {
    number.is_multiple_of(RUNS_ON)
}

/// FNV-1a: the same in every version.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::ToSpan;
    use jiff::civil::date;

    use super::*;

    fn library() -> Library {
        Library::new(7, &FleetConfig::default())
    }

    fn ids(ads: &[Ad]) -> BTreeSet<&str> {
        ads.iter().map(|ad| ad.id.as_str()).collect()
    }

    #[test]
    fn the_count_is_known_without_the_ads() {
        for days in [0, 1, 6, 40] {
            for format in [Format::All, Format::Video, Format::Image] {
                let start = date(2025, 1, 15);
                let languages = vec!["pt".into(), "en".into(), "pt".into()];
                let filters = Filters { start, end: start + days.days(), format, languages };
                let ads = library().truth(&filters);
                assert_eq!(library().count(&filters), ads.len() as u64);
                assert_eq!(ids(&ads).len(), ads.len(), "no ad stands in it twice");
                assert!(ads.is_sorted_by(|one, next| one.qtd_ads >= next.qtd_ads));
            }
        }
    }

    #[test]
    fn missions_that_overlap_share_ads() {
        let start = date(2025, 3, 3);
        let library = Library { empty: 0.0, ..library() };
        let of = |filters: &Filters| library.truth(filters);
        let day = of(&Filters::day(start, Format::Video, "pt"));
        let all = of(&Filters::day(start, Format::All, "pt"));
        assert!(ids(&all).is_superset(&ids(&day)) && all.len() > day.len());
        let next = of(&Filters::day(start + 1.day(), Format::Video, "pt"));
        let shared = ids(&day).intersection(&ids(&next)).count();
        assert!(shared > 0 && shared < day.len() && shared < next.len());
    }

    #[test]
    fn some_days_have_no_ads() {
        let days = (0..400).map(|day| date(2024, 1, 1) + day.days());
        let empty =
            days.filter(|day| library().count(&Filters::day(*day, Format::Video, "pt")) == 0);
        let empty = empty.count();
        assert!((10..90).contains(&empty), "{empty}");
    }
}
