//! What extraction means to reach beside its peers and below its limits.

use super::IN_FLIGHT;
use super::figures::{Figures, LATENCY_MS, SIZES, System};
use crate::bench::bars::{Rule, line, ratio};

pub(crate) fn judge(figures: &Figures) -> String {
    let of_peer =
        |peer, pages| ratio(figures.rate(System::Lavra, pages), figures.rate(peer, pages));
    let mut lines = Vec::new();
    for pages in SIZES {
        let mut judge = |what: &str, value, rule| {
            lines.push(line(&format!("{pages} pages: {what}"), value, rule));
        };
        judge("pages/s / dlt's REST source", of_peer(System::DltRest, pages), Rule::AtLeast(10.0));
        judge("pages/s / dlt by hand", of_peer(System::DltRaw, pages), Rule::NoBar);
        judge("pages/s / the asyncio loop", of_peer(System::Loop, pages), Rule::AtLeast(2.0));
        let limit = ratio(figures.rate(System::Lavra, pages), figures.appender(pages));
        judge("pages/s / DuckDB's appender", limit, Rule::AtLeast(0.7));
        let own = figures.peak_mb(System::Lavra, pages);
        let memory = ratio(own, figures.peak_mb(System::DltRest, pages));
        judge("peak memory / dlt's REST source", memory, Rule::AtMost(0.3));
        let file = ratio(figures.file_mb(System::Lavra, pages), figures.zstd_mb(pages));
        judge("file / the bodies by zstd -3", file, Rule::AtMost(1.3));
    }
    let [few, many] = SIZES.map(|pages| figures.peak_mb(System::Lavra, pages));
    let what = format!("peak memory at {} pages / at {}", SIZES[1], SIZES[0]);
    lines.push(line(&what, ratio(many, few), Rule::AtMost(1.1)));
    let possible = IN_FLIGHT as f64 * 1000.0 / LATENCY_MS as f64;
    let what = format!("{LATENCY_MS} ms away: pages/s / the {possible} possible");
    lines.push(line(&what, ratio(figures.far(), Some(possible)), Rule::AtLeast(0.93)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::cost;
    use super::super::figures::{Appended, Served};
    use super::*;

    #[test]
    fn every_bar_is_judged_and_what_was_not_measured_is_said() {
        let mut figures = Figures::default();
        assert!(judge(&figures).lines().all(|line| line.ends_with("not measured")));

        for pages in SIZES {
            figures.take(System::Lavra, pages, cost(1.0, 100, 13));
            figures.take(System::DltRest, pages, cost(11.0, 300, 90));
            figures.take(System::Loop, pages, cost(1.5, 300, 90));
            let appended = Appended { seconds: 0.8, file_bytes: 1e7, zstd_bytes: 1e7 };
            figures.take_limits(pages, Served { pages_per_second: 3000.0 }, appended);
        }
        figures.take_far(3840, cost(12.5, 100, 13));
        let judged = judge(&figures);
        // Of each size dlt's speed, the appender and the file; then the memory at both, and from far away.
        assert_eq!(judged.matches("PASS").count(), 8, "{judged}");
        // Of each size the loop and the memory.
        assert_eq!(judged.matches("FAIL").count(), 4, "{judged}");
        assert_eq!(judged.matches("not measured").count(), 2, "{judged}");
    }
}
