//! What Lavra's tasks mean to reach beside other systems.

use super::driver::System;
use super::figures::{CREATION, Figure, Figures, SIZES};
use crate::bench::bars::{Rule, line, ratio};

pub(crate) fn judge(figures: &Figures) -> String {
    let complete = |system, size| figures.of(system, Figure::CompletePerSecond(size));
    let of = |system, figure| figures.of(system, figure);
    let best_peer = System::PEERS
        .into_iter()
        .filter_map(|peer| of(peer, Figure::PickupMedian))
        .min_by(f64::total_cmp);
    let [fewest, _, most] = SIZES;

    let mut lines = Vec::new();
    for size in SIZES {
        let what = format!("completions at {size} / awa's");
        lines.push(line(
            &what,
            ratio(complete(System::Lavra, size), complete(System::Awa, size)),
            Rule::AtLeast(2.0),
        ));
    }
    for size in &SIZES[1..] {
        let what = format!("completions at {size} / graphile-worker's (Node)");
        let ratio = ratio(complete(System::Lavra, *size), complete(System::GraphileNode, *size));
        lines.push(line(&what, ratio, Rule::AtLeast(1.5)));
    }
    let creation = Figure::CreatePerSecond(CREATION);
    let ratio_of_creation = ratio(of(System::Lavra, creation), of(System::Awa, creation));
    lines.push(line(
        "batched creation (by 2) / awa's COPY (by 1)",
        ratio_of_creation,
        Rule::AtLeast(0.8),
    ));
    let flatness = ratio(complete(System::Lavra, most), complete(System::Lavra, fewest));
    lines.push(line(
        &format!("completions at {most} / at {fewest}"),
        flatness,
        Rule::AtLeast(0.85),
    ));
    let delivery = ratio(figures.deliver(), figures.publish());
    lines.push(line(
        "outbox to RabbitMQ / its own confirmed publish",
        delivery,
        Rule::AtLeast(0.6),
    ));
    let median = ratio(of(System::Lavra, Figure::PickupMedian), best_peer);
    lines.push(line("pick-up p50 / the best peer's", median, Rule::AtMost(1.0)));
    lines.push(line("pick-up p99, ms", of(System::Lavra, Figure::PickupWorst), Rule::AtMost(50.0)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_bar_is_judged_and_what_was_not_measured_is_said() {
        let mut figures = Figures::default();
        assert!(judge(&figures).lines().all(|line| line.ends_with("not measured")));

        let rates = |rate: f64| json!({ "create_per_s": rate, "complete_per_s": rate });
        for size in SIZES {
            let both = [Figure::CreatePerSecond(size), Figure::CompletePerSecond(size)];
            figures.take(System::Lavra, &both, &rates(300.0)).unwrap();
            figures.take(System::Awa, &both, &rates(100.0)).unwrap();
            figures.take(System::GraphileNode, &both, &rates(250.0)).unwrap();
        }
        let judged = judge(&figures);
        assert_eq!(judged.matches("PASS").count(), 5, "{judged}");
        assert_eq!(judged.matches("FAIL").count(), 2, "{judged}");
    }
}
