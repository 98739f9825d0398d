//! How much a run must have done before it shows anything.

use crate::torture::chaos::Toll;

/// From this length on everybody must have been killed: each is owed it, within some forty blows.
pub(in crate::torture::all) const LONG_ENOUGH: u64 = 120;
/// A run makes more days of missions than one in so many seconds.
const SECONDS_A_DAY: u64 = 60;

/// What there is at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::torture::all) struct Amounts {
    pub(in crate::torture::all) days: usize,
    pub(in crate::torture::all) extractions: usize,
    pub(in crate::torture::all) missions: usize,
    pub(in crate::torture::all) ads: usize,
    pub(in crate::torture::all) records: usize,
}

/// What there is too little of, for so many seconds.
pub(in crate::torture::all) fn too_little(
    seconds: u64,
    amounts: &Amounts,
    toll: &Toll,
) -> Vec<String> {
    let least = [
        ("days of missions were promised", amounts.days, seconds.div_ceil(SECONDS_A_DAY)),
        ("extractions were promised", amounts.extractions, 1),
        ("missions are there", amounts.missions, 1),
        ("ads are stored", amounts.ads, 1),
        ("records are stored", amounts.records, 1),
    ];
    let few = least.into_iter().filter(|(_, count, least)| (*count as u64) < *least);
    let few = few.map(|(what, count, least)| format!("only {count} {what}, not {least}"));
    let spared = toll.spared().filter(|_| seconds >= LONG_ENOUGH);
    few.chain(spared.map(|name| format!("{name} was never killed"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torture::processes::Suffered;

    fn toll(kills: u32) -> Toll {
        let world = Suffered { name: "world".into(), kills, freezes: 0 };
        Toll { processes: vec![world], servers: [("PostgreSQL", 1), ("RabbitMQ", kills)] }
    }

    const PLENTY: Amounts =
        Amounts { days: 5, extractions: 1, missions: 30, ads: 900, records: 5000 };

    #[test]
    fn a_run_that_did_nothing_has_not_passed() {
        assert_eq!(too_little(300, &PLENTY, &toll(1)), Vec::<String>::new());
        assert_eq!(too_little(20, &Amounts::default(), &toll(1)).len(), 5);
        let few = too_little(360, &PLENTY, &toll(1));
        assert_eq!(few, ["only 5 days of missions were promised, not 6"]);
    }

    #[test]
    fn a_long_run_has_killed_everybody() {
        let spared = too_little(LONG_ENOUGH, &PLENTY, &toll(0));
        assert_eq!(spared, ["world was never killed", "RabbitMQ was never killed"]);
        assert_eq!(too_little(LONG_ENOUGH - 1, &PLENTY, &toll(0)), Vec::<String>::new());
    }
}
