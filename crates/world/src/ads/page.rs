//! A page, as JSON.

use serde_json::{Value, json};

use super::query::{Query, cursor};
use super::{AdLibrary, record};

impl AdLibrary {
    /// The page that is asked for; `more` ads that nobody knew of stand at the end of all.
    pub(super) fn page(&self, query: &Query, more: u64) -> Value {
        let ads = self.find(&query.filters);
        let seed = self.inner.config.seed;
        let total = ads.len() as u64 + more;
        let late = |place: u64| json!({ "id": format!("ad_late_{}", place - ads.len() as u64) });
        let shown: Vec<Value> = (query.skip..total.min(query.skip.saturating_add(query.size)))
            .map(|place| match ads.get(place as usize) {
                Some(ad) => record::of(ad, seed),
                None => late(place),
            })
            .collect();
        let next = query.skip.saturating_add(query.size);
        json!({
            "ads": shown,
            "paging": {
                "total": total,
                "pages": total.div_ceil(query.size),
                "page": query.skip / query.size + 1,
                "page_size": query.size,
                "next_cursor": (next < total).then(|| cursor(next)),
            },
        })
    }

    /// The page that an empty list would have.
    pub(super) fn nothing(query: &Query) -> Value {
        json!({
            "ads": [],
            "paging": {
                "total": 0, "pages": 0, "page": 1, "page_size": query.size, "next_cursor": null,
            },
        })
    }
}
