//! Charts as SVG, made here. No style stands in them: the page's style sheet colours their classes.

use std::fmt::Write;

use super::format::Format;

/// A piece of time, with what went well and what did not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bar {
    pub(crate) good: i64,
    pub(crate) poor: i64,
}

const WIDTH: i64 = 720;
const HEIGHT: i64 = 160;
const FOOT: i64 = 18;

/// Bars side by side, the oldest first; `labels` stand under the first, the middle and the last.
pub(crate) fn bars(bars: &[Bar], labels: [&str; 3], title: &str, format: &Format) -> String {
    let most = bars.iter().map(|bar| bar.good + bar.poor).max().unwrap_or(0).max(1);
    let count = bars.len().max(1) as i64;
    let (room, head) = (HEIGHT - FOOT, 12);
    let tall = |amount: i64| amount * (room - head) / most;
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    let top = head;
    let _infallible = write!(
        svg,
        "<line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{top}\" y2=\"{top}\"/>\
         <line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{room}\" y2=\"{room}\"/>\
         <text x=\"0\" y=\"9\">{}</text>",
        format.number(most)
    );
    let step = WIDTH / count;
    let thick = (step - 2).max(1);
    for (place, bar) in bars.iter().enumerate() {
        let x = place as i64 * WIDTH / count;
        let (good, poor) = (tall(bar.good), tall(bar.poor));
        // What is there is seen, however little it is.
        let good = if bar.good > 0 { good.max(2) } else { 0 };
        let poor = if bar.poor > 0 { poor.max(2) } else { 0 };
        for (class, y, height) in [("good", room - good, good), ("poor", room - good - poor, poor)]
        {
            if height > 0 {
                let _infallible = write!(
                    svg,
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{thick}\" height=\"{height}\" rx=\"1\"/>"
                );
            }
        }
    }
    let foot = HEIGHT - 4;
    let places = [(0, "start"), (WIDTH / 2, "middle"), (WIDTH, "end")];
    for (label, (x, anchor)) in labels.iter().zip(places) {
        let _infallible = write!(
            svg,
            "<text x=\"{x}\" y=\"{foot}\" text-anchor=\"{anchor}\">{}</text>",
            escape(label)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// A span on a lane, in thousandths of the whole.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// `good`, `poor`, `work` or `rest`.
    pub(crate) class: &'static str,
    pub(crate) title: String,
}

/// One lane of a timeline.
pub(crate) fn lane(spans: &[Span], title: &str) -> String {
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 1000 22\" preserveAspectRatio=\"none\" height=\"22\" \
         role=\"img\" aria-label=\"{}\"><line class=\"grid\" x1=\"0\" x2=\"1000\" y1=\"11\" y2=\"11\"/>",
        escape(title)
    );
    for span in spans {
        let from = span.from.clamp(0, 1000);
        let width = (span.to - span.from).clamp(3, 1000 - from.min(997));
        let _infallible = write!(
            svg,
            "<rect class=\"{}\" x=\"{from}\" y=\"3\" width=\"{width}\" height=\"16\" rx=\"2\"><title>{}</title></rect>",
            span.class,
            escape(&span.title)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Results side by side, the oldest first, in a room for `room` of them: a good one is tall, a poor one
/// short, so that it is told by more than its colour.
pub(crate) fn strip(results: &[bool], room: usize, title: &str) -> String {
    let wide = room.max(results.len()) * 6;
    let mut svg = format!(
        "<svg class=\"chart strip\" viewBox=\"0 0 {wide} 18\" width=\"{wide}\" height=\"18\" \
         role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for (place, is_good) in results.iter().enumerate() {
        let (class, y, height) = if *is_good { ("good", 1, 16) } else { ("poor", 10, 7) };
        let x = place * 6;
        let _infallible = write!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"4\" height=\"{height}\" rx=\"1\"/>"
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Text within markup.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::texts::Language;

    #[test]
    fn the_highest_bar_fills_the_room_and_the_smallest_is_seen() {
        let svg = bars(
            &[Bar { good: 1000, poor: 0 }, Bar { good: 0, poor: 1 }, Bar::default()],
            ["a", "b", "<c>"],
            "\"pace\"",
            &Format::new(Language::English),
        );
        assert!(svg.contains("height=\"130\""), "{svg}");
        assert!(svg.contains("class=\"poor\"") && svg.contains("height=\"2\""), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(
            svg.contains("&lt;c&gt;")
                && svg.contains("&quot;pace&quot;")
                && svg.contains(">1,000<")
        );
        assert!(!svg.contains("style="));
    }

    #[test]
    fn a_good_result_is_taller_than_a_poor_one() {
        let svg = strip(&[true, false], 20, "<1>");
        assert!(svg.contains("class=\"good\" x=\"0\" y=\"1\" width=\"4\" height=\"16\""), "{svg}");
        assert!(svg.contains("class=\"poor\" x=\"6\" y=\"10\" width=\"4\" height=\"7\""), "{svg}");
        assert!(svg.contains("&lt;1&gt;"));
    }

    #[test]
    fn a_span_never_leaves_its_lane() {
        let span = |from, to| Span { from, to, class: "good", title: "<b>".into() };
        let svg = lane(&[span(-5, 2), span(990, 2000), span(1000, 1000)], "t");
        for wrong in ["x=\"-", "width=\"-", "width=\"0\"", "<b>"] {
            assert!(!svg.contains(wrong), "{wrong}: {svg}");
        }
    }
}
