//! What a request asks of the library.

use std::fmt::Display;

use jiff::civil::Date;
use url::form_urlencoded;

use crate::day::Day;
use crate::fleet::ads::LONGEST;
use crate::fleet::{Filters, Format};

/// A page of the ads that fit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Query {
    pub(super) filters: Filters,
    /// How many ads come before it.
    pub(super) skip: u64,
    pub(super) size: u64,
}

const USUAL_SIZE: u64 = 50;

impl Query {
    /// `date_start` and `date_end` are needed, everything else has a default. A page is named by its
    /// number or by the cursor of the page before.
    pub(super) fn parse(query: &str, cap: u64) -> Result<Self, String> {
        let (mut start, mut end, mut format) = (None, None, Format::All);
        let (mut languages, mut page, mut cursor, mut size) = (Vec::new(), 1, None, USUAL_SIZE);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.as_ref();
            match name.as_ref() {
                "date_start" => start = Some(read(&name, value)?),
                "date_end" => end = Some(read(&name, value)?),
                "media_type" => {
                    format = match value {
                        "all" => Format::All,
                        "video" => Format::Video,
                        "image" => Format::Image,
                        _ => return Err("media_type is all, video or image".into()),
                    }
                }
                "languages" => {
                    let named = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                    languages.extend(named.map(str::to_owned));
                }
                "sort_by" if value == "qtd_ads" => {}
                "sort_by" => return Err("sort_by is qtd_ads".into()),
                "page" => page = read(&name, value)?,
                "page_size" => size = read(&name, value)?,
                "cursor" => cursor = Some(skipped(value)?),
                other => return Err(format!("{other} is not known here")),
            }
        }
        let start: Date = start.ok_or("date_start is missing")?;
        let end: Date = end.ok_or("date_end is missing")?;
        if end < start || Day::from(start).until(Day::from(end)) >= LONGEST {
            return Err("date_end is before date_start, or too long after it".into());
        }
        if size == 0 || size > cap {
            return Err(format!("page_size is from 1 to {cap}"));
        }
        if page == 0 {
            return Err("pages are counted from 1".into());
        }
        let filters = Filters { start, end, format, languages };
        let skip = cursor.unwrap_or_else(|| (page - 1_u64).saturating_mul(size));
        Ok(Self { filters, skip, size })
    }
}

pub(super) fn cursor(skip: u64) -> String {
    format!("after-{skip}")
}

fn skipped(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("after-").and_then(|number| number.parse().ok());
    number.ok_or_else(|| "the cursor is none of ours".to_owned())
}

fn read<T: std::str::FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: &str = "date_start=2025-01-15&date_end=2025-01-15";

    #[test]
    fn a_page_is_named_by_its_number_or_by_a_cursor() {
        let of = |more: &str| Query::parse(&format!("{DAY}{more}"), 500);
        assert_eq!(of("").unwrap().skip, 0);
        assert_eq!(of("&page=3&page_size=150").unwrap().skip, 300);
        assert_eq!(of(&format!("&cursor={}", cursor(450))).unwrap().skip, 450);
        assert_eq!(of("&languages=pt,en&languages=es").unwrap().filters.languages.len(), 3);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for wrong in ["page=0", "page_size=501", "media_type=gif", "cursor=7", "limit=3", "page=x"]
        {
            assert!(Query::parse(&format!("{DAY}&{wrong}"), 500).is_err(), "{wrong}");
        }
        for wrong in ["", "date_start=2025-01-15", "date_start=2025-02-01&date_end=2025-01-01"] {
            assert!(Query::parse(wrong, 500).is_err(), "{wrong}");
        }
    }
}
