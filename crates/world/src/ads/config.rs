//! How large a library is.

/// All that decides what a library holds.
#[derive(Clone, Copy, Debug)]
pub struct AdsConfig {
    pub seed: u64,
    /// Ads of one day, format and language, on average.
    pub ads: u64,
    /// The share of blocks of four days, of one format and language, in which there is no ad.
    pub empty: f64,
    /// The most ads of a page.
    pub page_cap: u64,
}

impl Default for AdsConfig {
    fn default() -> Self {
        Self { seed: 1, ads: 200, empty: 0.05, page_cap: 500 }
    }
}
