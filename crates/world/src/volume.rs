//! How many records each day has: a pure function of the configuration, the list and the day.
//!
//! The curves go through counts that harvesters of the real API published, as records a day in the
//! middle of a spell, and geometrically between them. Weekends are quiet, days differ, and a day's
//! fraction of a record becomes a whole one by chance, so that a small scale keeps the yearly sums.

use crate::config::Fixed;
use crate::day::Day;
use crate::dice::Dice;
use crate::endpoint::{CLASSES, Endpoint, FanOut, SYSTEMS};

/// (year, month, records a day).
type Curve = &'static [(i32, i32, f64)];

const CONTRATOS: Curve = &[
    (2021, 9, 40.0),
    (2022, 7, 111.0),
    (2023, 7, 600.0),
    (2024, 7, 3474.0),
    (2025, 7, 6090.0),
    (2026, 1, 5600.0),
];
const CONTRATOS_UPDATED: Curve = &[
    (2021, 9, 20.0),
    (2022, 7, 60.0),
    (2023, 7, 400.0),
    (2024, 7, 3195.0),
    (2025, 7, 7000.0),
    (2026, 8, 8127.0),
];
const CONTRATACOES: Curve = &[
    (2021, 8, 45.0),
    (2022, 7, 170.0),
    (2023, 7, 640.0),
    (2024, 7, 3500.0),
    (2025, 7, 4000.0),
    (2026, 6, 4938.0),
];
const CONTRATACOES_UPDATED: Curve =
    &[(2021, 8, 20.0), (2022, 7, 90.0), (2023, 7, 400.0), (2024, 7, 3200.0), (2026, 8, 7255.0)];
const ATAS: Curve =
    &[(2022, 1, 0.3), (2022, 9, 1.0), (2023, 7, 100.0), (2024, 7, 960.0), (2025, 7, 1320.0)];
const ATAS_UPDATED: Curve =
    &[(2022, 1, 0.3), (2022, 9, 1.0), (2023, 7, 100.0), (2024, 7, 991.0), (2026, 8, 2764.0)];
const INSTRUMENTOS: Curve =
    &[(2025, 1, 60.0), (2025, 3, 118.0), (2026, 1, 600.0), (2026, 8, 496.0)];
/// Items, not plans.
const PCA: Curve = &[(2025, 2, 16_000.0), (2025, 6, 6000.0), (2026, 6, 6300.0)];

/// How much the real lists hold of one modalidade, in millionths, from the first year that has it.
const MODALITY_SHARES: [(u16, f64, i32); 14] = [
    (1, 1100.0, 2021),
    (2, 60.0, 2025),
    (3, 500.0, 2021),
    (4, 52_200.0, 2021),
    (5, 2600.0, 2021),
    (6, 241_500.0, 2021),
    (7, 2700.0, 2021),
    (8, 509_700.0, 2021),
    (9, 170_400.0, 2021),
    (10, 90.0, 2024),
    (11, 500.0, 2022),
    (12, 15_900.0, 2021),
    (13, 1300.0, 2021),
    (14, 900.0, 2026),
];

/// The volumes of one world.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) seed: u64,
    pub(crate) scale: f64,
    pub(crate) today: Day,
    pub(crate) fixed: Option<Fixed>,
}

impl Volume {
    /// The records of one list and fan-out value on one day.
    pub(crate) fn of_day(&self, endpoint: Endpoint, fan: u16, day: Day) -> u64 {
        if let Some(fixed) = &self.fixed {
            return of_fixed(fixed, endpoint, fan, day);
        }
        let expected = self.expected(endpoint, fan, day) * self.scale;
        if expected <= 0.0 {
            return 0;
        }
        let mut dice =
            Dice::of(&[self.seed, endpoint as u64, fan.into(), day.number() as u64, 0xDA7]);
        // Days differ by up to a fifth of the usual.
        let expected = expected * (0.8 + 0.4 * dice.share());
        (expected + dice.share()) as u64
    }

    fn expected(&self, endpoint: Endpoint, fan: u16, day: Day) -> f64 {
        let week = if day.is_weekend() { 0.15 } else { 1.34 };
        let past = |curve| {
            let none = day > self.today || day.civil() < first(endpoint);
            if none { 0.0 } else { at(curve, day) * week }
        };
        match endpoint {
            Endpoint::Contratos => past(CONTRATOS),
            Endpoint::ContratosAtualizacao => past(CONTRATOS_UPDATED),
            Endpoint::ContratacoesPublicacao => past(CONTRATACOES) * modality(fan, day),
            Endpoint::ContratacoesAtualizacao => past(CONTRATACOES_UPDATED) * modality(fan, day),
            Endpoint::ContratacoesProposta => self.closing(day) * week * modality(fan, day),
            Endpoint::Atas => past(ATAS),
            Endpoint::AtasAtualizacao => past(ATAS_UPDATED),
            Endpoint::InstrumentosCobranca => past(INSTRUMENTOS),
            Endpoint::PcaAtualizacao => past(PCA),
            // A whole year of one class or one system stands on its first of January.
            Endpoint::Pca => self.year(&CLASSES, fan, day, 6000.0),
            Endpoint::PcaUsuario => self.year(&SYSTEMS, fan, day, 9000.0),
        }
    }

    /// Proposals that close on a day: most within weeks, a few in years.
    fn closing(&self, day: Day) -> f64 {
        let ahead = f64::from(self.today.until(day));
        if ahead < 0.0 {
            return 0.0;
        }
        let fading = |total: f64, days: f64| total / days * (-ahead / days).exp();
        fading(26_000.0, 25.0) + fading(7000.0, 120.0) + fading(1200.0, 600.0)
    }

    fn year(&self, known: &[(u16, &str)], fan: u16, day: Day, usual: f64) -> f64 {
        let (year, month, of_month) = day.civil();
        let known = known.iter().any(|(code, _)| *code == fan);
        if !known || (month, of_month) != (1, 1) || year < 2022 || year > self.today.year() + 1 {
            return 0.0;
        }
        usual * (0.2 + f64::from(fan % 7))
    }
}

/// The first day that has records, as year, month and day.
const fn first(endpoint: Endpoint) -> (i32, u32, u32) {
    match endpoint {
        Endpoint::Contratos | Endpoint::ContratosAtualizacao => (2021, 9, 6),
        Endpoint::ContratacoesPublicacao
        | Endpoint::ContratacoesAtualizacao
        | Endpoint::ContratacoesProposta => (2021, 8, 10),
        Endpoint::Atas | Endpoint::AtasAtualizacao | Endpoint::Pca | Endpoint::PcaUsuario => {
            (2022, 1, 1)
        }
        Endpoint::InstrumentosCobranca => (2025, 1, 1),
        Endpoint::PcaAtualizacao => (2025, 2, 25),
    }
}

fn modality(fan: u16, day: Day) -> f64 {
    let share = MODALITY_SHARES.iter().find(|(code, ..)| *code == fan);
    share.map_or(0.0, |(_, share, since)| if day.year() < *since { 0.0 } else { share / 1e6 })
}

/// The curve on a day.
fn at(curve: Curve, day: Day) -> f64 {
    let place = |(year, month, _): &(i32, i32, f64)| year * 12 + month;
    let (year, month, of_month) = day.civil();
    let now = year * 12 + month as i32;
    let Some(next) = curve.iter().position(|point| place(point) > now) else {
        return curve.last().map_or(0.0, |point| point.2);
    };
    let Some(before) = next.checked_sub(1).map(|index| &curve[index]) else { return 0.0 };
    let after = &curve[next];
    let way = (f64::from(now - place(before)) + f64::from(of_month - 1) / 31.0)
        / f64::from(place(after) - place(before));
    before.2 * (after.2 / before.2).powf(way)
}

/// The pages of the fixed month, spread over its days.
fn of_fixed(fixed: &Fixed, endpoint: Endpoint, fan: u16, day: Day) -> u64 {
    let first = Day::from(fixed.month.first_of_month());
    let days = u64::from(fixed.month.days_in_month().unsigned_abs());
    let index = u64::try_from(first.until(day)).unwrap_or(u64::MAX);
    let mine = match endpoint.fan_out() {
        FanOut::None => 0,
        FanOut::Modality { .. } | FanOut::Class | FanOut::System => fixed.fan_out,
    };
    if (endpoint, fan) != (fixed.endpoint, mine) || index >= days {
        return 0;
    }
    let total = fixed.pages.saturating_mul(fixed.page_size);
    total / days + u64::from(index < total % days)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(scale: f64) -> Volume {
        Volume { seed: 5, scale, today: Day::parse("20261001").unwrap(), fixed: None }
    }

    fn sum(volume: &Volume, endpoint: Endpoint, fan: u16, from: &str, to: &str) -> u64 {
        let (from, to) = (Day::parse(from).unwrap(), Day::parse(to).unwrap());
        from.through(to).map(|day| volume.of_day(endpoint, fan, day)).sum()
    }

    /// The counts are those of the published harvests, within a quarter.
    #[test]
    fn the_volumes_are_those_of_the_real_lists() {
        let real = [
            (Endpoint::Contratos, 0, "20240701", "20240731", 107_709),
            (Endpoint::Contratos, 0, "20240901", "20240930", 122_676),
            (Endpoint::Contratos, 0, "20250101", "20251231", 2_023_341),
            (Endpoint::ContratosAtualizacao, 0, "20240701", "20240731", 99_052),
            (Endpoint::ContratacoesPublicacao, 6, "20260601", "20260615", 17_891),
            (Endpoint::ContratacoesPublicacao, 8, "20260601", "20260615", 37_751),
            (Endpoint::AtasAtualizacao, 0, "20240701", "20240731", 30_735),
            (Endpoint::Atas, 0, "20240701", "20250630", 410_326),
            (Endpoint::InstrumentosCobranca, 0, "20250301", "20250331", 3658),
            (Endpoint::InstrumentosCobranca, 0, "20260121", "20260219", 17_991),
            (Endpoint::PcaAtualizacao, 0, "20260601", "20260607", 44_054),
        ];
        for (endpoint, fan, from, to, count) in real {
            let ours = sum(&volume(1.0), endpoint, fan, from, to) as f64;
            let ratio = ours / f64::from(count);
            assert!((0.75..1.33).contains(&ratio), "{endpoint} {from}: {ours} for {count}");
        }
        let open: u64 = (1..=14)
            .map(|fan| {
                sum(&volume(1.0), Endpoint::ContratacoesProposta, fan, "20261001", "20270101")
            })
            .sum();
        assert!((22_000..34_000).contains(&open), "{open}");
    }

    #[test]
    fn a_small_scale_keeps_the_proportions() {
        let whole = sum(&volume(1.0), Endpoint::Contratos, 0, "20240101", "20241231") as f64;
        let small = sum(&volume(0.001), Endpoint::Contratos, 0, "20240101", "20241231") as f64;
        assert!((0.9..1.1).contains(&(small * 1000.0 / whole)), "{small} of {whole}");
    }

    #[test]
    fn there_is_nothing_before_the_first_data_after_today_or_of_unknown_modalidades() {
        let whole = volume(1.0);
        for endpoint in [Endpoint::Contratos, Endpoint::Atas, Endpoint::PcaAtualizacao] {
            assert_eq!(sum(&whole, endpoint, 0, "20200101", "20210731"), 0);
            assert_eq!(sum(&whole, endpoint, 0, "20261002", "20270101"), 0);
        }
        assert_eq!(sum(&whole, Endpoint::Contratos, 0, "20210901", "20210905"), 0);
        assert!(sum(&whole, Endpoint::Contratos, 0, "20210906", "20210910") > 0);
        assert_eq!(sum(&whole, Endpoint::PcaAtualizacao, 0, "20250201", "20250224"), 0);
        for empty in [0, 2, 14, 15, 99] {
            let list = Endpoint::ContratacoesPublicacao;
            assert_eq!(sum(&whole, list, empty, "20240101", "20241231"), 0);
        }
    }

    #[test]
    fn a_fixed_month_has_exactly_its_pages_and_nothing_else_has_any() {
        let fixed = Fixed { pages: 77, ..Fixed::default() };
        let volume = Volume { fixed: Some(fixed), ..volume(1.0) };
        let list = Endpoint::ContratacoesPublicacao;
        assert_eq!(sum(&volume, list, 6, "20240101", "20241231"), 77 * 50);
        assert_eq!(sum(&volume, list, 6, "20240701", "20240731"), 77 * 50);
        assert_eq!(sum(&volume, list, 8, "20240101", "20241231"), 0);
    }
}
