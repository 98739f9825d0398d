//! Whether an endpoint answers at all, found out by asking for as little as possible.
//!
//! When everything fails it may be an outage, which is waited for; or it may be the one page that
//! is still missing, or a window that is too much for the server, and waiting would help neither.
//! A day by itself tells them apart, or another year; and where all that can be asked for is today, its
//! first page tells apart the others. What comes is not kept: it is no page of any window.

use jiff::Span;
use jiff::civil::Date;

use super::Run;
use crate::error::Result;
use crate::host::{Ended, Permit};
use crate::model::Window;
use crate::plan::today;
use crate::reading::read;
use crate::request::{Request, request};
use crate::source::{Period, Series};

impl Run {
    /// What may be asked for instead of a page: page 1 of one day, or of the year before. Of a snapshot
    /// there is nothing but its page 1.
    pub(super) fn least(
        &self,
        series: &Series<'_>,
        window: &Window,
        page: i64,
    ) -> Result<Option<Request>> {
        let first = match series.endpoint.period {
            Period::Month { .. } => day(window),
            Period::Year { .. } => window.first_day.checked_sub(Span::new().years(1)).ok(),
            Period::Snapshot { .. } => (page > 1).then_some(window.first_day),
        };
        let Some(day) = first else { return Ok(None) };
        let least = Window { number: 0, first_day: day, last_day: day, base: 0, totals: None };
        let today = today(self.source(), self.now());
        request(self.source(), series, &least, 1, today).map(Some)
    }

    /// Asks for it, and says whether the endpoint answered.
    pub(super) async fn probe(&self, permit: Permit, series: &Series<'_>, least: &Request) -> bool {
        self.tally.request();
        let answer = self.extractor.client.fetch(&least.url).await;
        let reading = read(&answer, self.source(), series.endpoint, 1, 0, self.now());
        let ended = Ended::of(&reading);
        let change = permit.end(ended);
        self.tell_of_outage(change, &series.endpoint.name, &reading);
        ended == Ended::Well
    }

    /// Whether the endpoint answers now.
    pub(super) async fn is_there(&self, series: &Series<'_>, window: &Window) -> Result<bool> {
        let Some(least) = self.least(series, window, 1)? else { return Ok(false) };
        let endpoint = series.endpoint;
        let permit = tokio::select! {
            biased;
            () = self.extractor.stop.cancelled() => return Ok(false),
            permit = self.extractor.host.permit(&endpoint.name, endpoint.in_flight) => permit,
        };
        Ok(self.probe(permit, series, &least).await)
    }
}

/// The window's first day, or the one before it where that is all of the window.
fn day(window: &Window) -> Option<Date> {
    if window.first_day < window.last_day {
        return Some(window.first_day);
    }
    window.first_day.yesterday().ok()
}
