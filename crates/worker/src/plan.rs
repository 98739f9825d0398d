//! What an order means for a source: the requests of its pages.

use jiff::Timestamp;
use jiff::civil::Date;
use lavra_extract::model::Window;
use lavra_extract::request::request;
use lavra_extract::source::{Endpoint, Filter, Series, Source};
use url::Url;

use crate::model::{Media, Order};

/// The endpoint with the filters in its query, and the days.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) source: Source,
    pub(crate) endpoint: Endpoint,
    window: Window,
}

impl Plan {
    /// Refuses, in words for the caller, what the source cannot be asked for.
    pub(crate) fn new(source: &Source, endpoint: &Endpoint, order: &Order) -> Result<Self, String> {
        let mut endpoint = endpoint.clone();
        let filters = &source.filters;
        let languages = order.languages.join(filters.separator.as_deref().unwrap_or(","));
        let media = Some(order.media.as_str()).filter(|_| order.media != Media::All);
        let wanted = [
            (Filter::MediaType, "format", &filters.media_type, media),
            (
                Filter::Languages,
                "languages",
                &filters.languages,
                Some(languages.as_str()).filter(|text| !text.is_empty()),
            ),
            (Filter::SortBy, "sort_by", &filters.sort_by, order.sort_by.as_deref()),
        ];
        for (filter, name, parameter, value) in wanted {
            let Some(value) = value else { continue };
            match parameter {
                Some(parameter) => {
                    endpoint.query.insert(parameter.clone(), value.to_owned());
                }
                None if filters.ignore.contains(&filter) => {}
                None => {
                    let source = &source.name;
                    return Err(format!(
                        "filters.{name}: the source {source} has none; name its parameter in \
                         [filters], or ignore it there"
                    ));
                }
            }
        }
        if let Some(size) = order.batch_size.filter(|_| source.request.page_size.is_some()) {
            let (least, most) = endpoint.page_size_range;
            endpoint.page_size = size.clamp(least, most);
        }
        let window = window(order.start, order.end);
        Ok(Self { source: source.clone(), endpoint, window })
    }

    /// The least that can be asked for: whether it answers at all.
    pub(crate) fn least(source: &Source, endpoint: &Endpoint) -> Self {
        let mut endpoint = endpoint.clone();
        if source.request.page_size.is_some() {
            endpoint.page_size = endpoint.page_size_range.0.max(1);
        }
        let today = today(source);
        Self { source: source.clone(), endpoint, window: window(today, today) }
    }

    /// How many lists there are: one for each value of a fan-out.
    pub(crate) fn lists(&self) -> usize {
        self.endpoint.all_series().count()
    }

    /// Page `page` of list `list`.
    pub(crate) fn url(&self, list: usize, page: i64) -> Result<Url, String> {
        let mut all = self.endpoint.all_series();
        let series: Series<'_> = all.nth(list).ok_or("there is no such list")?;
        let request = request(&self.source, &series, &self.window, page, today(&self.source));
        Ok(request.map_err(|error| error.to_string())?.url)
    }
}

fn window(first_day: Date, last_day: Date) -> Window {
    Window { number: 1, first_day, last_day, base: 0, totals: None }
}

fn today(source: &Source) -> Date {
    Timestamp::now().to_zoned(source.time_zone.clone()).date()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn order() -> Order {
        Order {
            start: date(2025, 1, 15),
            end: date(2025, 1, 16),
            media: Media::Video,
            languages: vec!["pt".into(), "en".into()],
            sort_by: Some("qtd_ads".into()),
            max_ads: None,
            batch_size: Some(9999),
        }
    }

    #[test]
    fn filters_are_sent_under_the_names_of_the_source() {
        let ads = crate::config::ads().unwrap();
        let plan = Plan::new(&ads, &ads.endpoints[0], &order()).unwrap();
        let url = plan.url(0, 3).unwrap().to_string();
        assert!(
            url.ends_with(
                "/ads?languages=pt%2Cen&media_type=video&sort_by=qtd_ads&date_start=2025-01-15&\
             date_end=2025-01-16&page=3&page_size=500"
            ),
            "{url}"
        );
        let all = Order { media: Media::All, languages: Vec::new(), sort_by: None, ..order() };
        let plan = Plan::new(&ads, &ads.endpoints[0], &all).unwrap();
        assert!(plan.url(0, 1).unwrap().query().unwrap().starts_with("date_start"));
    }

    #[test]
    fn a_filter_that_the_source_does_not_have_is_refused_unless_it_is_ignored() {
        let text = include_str!("../sources/ads.toml").replace("languages = \"languages\"", "");
        let source = Source::parse(&text).unwrap();
        let refusal = Plan::new(&source, &source.endpoints[0], &order()).unwrap_err();
        assert!(refusal.contains("filters.languages"), "{refusal}");
        let text = text.replace("[filters]", "[filters]\nignore = [\"languages\"]");
        let source = Source::parse(&text).unwrap();
        Plan::new(&source, &source.endpoints[0], &order()).unwrap();
    }
}
