//! Whether an endpoint answers at all, found out by asking for as little as possible.
//!
//! When everything fails it may be an outage, which is waited for; or it may be the one page that
//! is still missing, or a window that is too much for the server, and waiting would help neither.
//! A day by itself tells them apart. What comes is not kept: it is no page of any window.

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
    /// Page 1 of one day, which is asked for by nobody else. Not all endpoints know days.
    pub(super) fn least(&self, series: &Series<'_>, window: &Window) -> Result<Option<Request>> {
        match series.endpoint.period {
            Period::Month { .. } => {}
            Period::Year { .. } | Period::Snapshot { .. } => return Ok(None),
        }
        let Some(day) = day(window) else { return Ok(None) };
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
        let Some(least) = self.least(series, window)? else { return Ok(false) };
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
