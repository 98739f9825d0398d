//! What was answered with yes, and so must be there whatever was killed since.

use std::collections::BTreeSet;

pub(super) const YEAR: u32 = 2025;
/// One mission a day for each of these with each of the languages.
pub(super) const MEDIA_TYPES: [&str; 2] = ["video", "image"];
pub(super) const LANGUAGES: [&str; 3] = ["pt", "en", "es"];

/// The lists of the demonstration: their paths, and how many values they are fanned out to, if they are.
pub(super) const LISTS: [(&str, &str, Option<u32>); 4] = [
    ("contratos_publicacao", "/v1/contratos", None),
    ("contratacoes_publicacao", "/v1/contratacoes/publicacao", Some(14)),
    ("atas_atualizacao", "/v1/atas/atualizacao", None),
    ("instrumentoscobranca_inclusao", "/v1/instrumentoscobranca/inclusao", None),
];

/// A mission by its day, media type and language.
pub(super) type Mission = (String, String, String);

#[derive(Debug, Default)]
pub(super) struct Promises {
    /// Days whose missions were promised.
    pub(super) days: BTreeSet<String>,
    /// Days that were asked for, and whose missions may be there although nobody said so.
    pub(super) asked_days: BTreeSet<String>,
    /// The last month that was promised, from January on.
    pub(super) months: u32,
    /// The extractions that were promised. All that were asked for were, in the end.
    pub(super) extractions: BTreeSet<String>,
    /// The runs of the fleet that were.
    pub(super) runs: BTreeSet<String>,
}

/// What of it is in the tables.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) missions: BTreeSet<Mission>,
    /// Lists of a month: `atas_atualizacao_2025-01-01`.
    pub(super) lists: BTreeSet<String>,
    pub(super) extractions: BTreeSet<String>,
    /// Of any type.
    pub(super) tasks: BTreeSet<String>,
}

impl Promises {
    pub(super) fn missions(&self) -> BTreeSet<Mission> {
        missions(&self.days)
    }

    /// The months whose lists were promised.
    pub(super) fn months(&self) -> BTreeSet<String> {
        (1..=self.months).map(|month| format!("{YEAR}-{month:02}")).collect()
    }

    fn lists(&self) -> BTreeSet<String> {
        self.months().iter().flat_map(|month| lists(month)).collect()
    }

    /// What is not as it was promised.
    pub(super) fn broken(&self, kept: &Kept) -> Vec<String> {
        let asked = missions(&self.asked_days);
        let named = |(day, media, language): &Mission| format!("{day} {media} {language}");
        let lost = self.missions().difference(&kept.missions).map(named).collect();
        let strange = kept.missions.difference(&asked).map(named).collect();
        let missing = |these: &BTreeSet<String>, those: &BTreeSet<String>| -> Vec<String> {
            these.difference(those).cloned().collect()
        };
        let all: [(&str, Vec<String>); 6] = [
            ("missions were promised and are not there", lost),
            ("missions are there that nobody asked for", strange),
            (
                "lists of a month were promised and are not there",
                missing(&self.lists(), &kept.lists),
            ),
            (
                "extractions were promised and are not there",
                missing(&self.extractions, &kept.extractions),
            ),
            ("extractions are there twice", missing(&kept.extractions, &self.extractions)),
            ("runs of the fleet were promised and are not there", missing(&self.runs, &kept.tasks)),
        ];
        let broken = all.into_iter().filter(|(_, which)| !which.is_empty());
        broken.map(|(what, which)| format!("{} {what}: {}", which.len(), some(&which))).collect()
    }
}

fn missions(days: &BTreeSet<String>) -> BTreeSet<Mission> {
    let kinds = MEDIA_TYPES.iter().flat_map(|media| LANGUAGES.map(|language| (*media, language)));
    let of_day = |day: &String| {
        let day = day.clone();
        kinds.clone().map(move |(media, language)| (day.clone(), media.into(), language.into()))
    };
    days.iter().flat_map(of_day).collect()
}

fn lists(month: &str) -> Vec<String> {
    let of = |(name, _, values): &(&str, &str, Option<u32>)| match values {
        None => vec![format!("{name}_{month}-01")],
        Some(values) => {
            (1..=*values).map(|value| format!("{name}_modalidade_{value}_{month}-01")).collect()
        }
    };
    LISTS.iter().flat_map(of).collect()
}

/// The first few of them.
fn some(which: &[String]) -> String {
    let (first, more) = (&which[..which.len().min(5)], which.len().saturating_sub(5));
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Loss = fn(&mut Kept);

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn promises() -> Promises {
        Promises {
            days: set(&["2025-01-01"]),
            asked_days: set(&["2025-01-01", "2025-01-02"]),
            months: 2,
            extractions: set(&["a"]),
            runs: set(&["r"]),
        }
    }

    fn kept() -> Kept {
        let promises = promises();
        let (missions, lists) = (promises.missions(), promises.lists());
        Kept { missions, lists, extractions: set(&["a"]), tasks: set(&["a", "r"]) }
    }

    #[test]
    fn what_was_promised_and_kept_is_well() {
        let kept = kept();
        assert_eq!((kept.missions.len(), kept.lists.len()), (6, 2 * 17));
        assert_eq!(promises().broken(&kept), Vec::<String>::new());
    }

    #[test]
    fn what_was_asked_for_without_an_answer_may_be_there_or_not() {
        let mut kept = kept();
        kept.missions.insert(("2025-01-02".into(), "video".into(), "pt".into()));
        kept.lists.insert("atas_atualizacao_2025-03-01".into());
        assert_eq!(promises().broken(&kept), Vec::<String>::new());
    }

    #[test]
    fn whatever_is_lost_is_found_by_its_name() {
        let losses: [(Loss, &str); 5] = [
            (
                |kept| {
                    kept.missions.pop_first();
                },
                "1 missions were promised and are not there: 2025-01-01 image en",
            ),
            (
                |kept| {
                    kept.lists.remove("contratacoes_publicacao_modalidade_8_2025-02-01");
                },
                "1 lists of a month were promised and are not there: \
                 contratacoes_publicacao_modalidade_8_2025-02-01",
            ),
            (|kept| kept.extractions.clear(), "1 extractions were promised and are not there: a"),
            (
                |kept| {
                    kept.tasks.remove("r");
                },
                "1 runs of the fleet were promised and are not there: r",
            ),
            (
                |kept| kept.lists.clear(),
                "34 lists of a month were promised and are not there: atas_atualizacao_2025-01-01, \
                 atas_atualizacao_2025-02-01, contratacoes_publicacao_modalidade_10_2025-01-01, \
                 contratacoes_publicacao_modalidade_10_2025-02-01, \
                 contratacoes_publicacao_modalidade_11_2025-01-01 and 29 more",
            ),
        ];
        for (lose, found) in losses {
            let mut kept = kept();
            lose(&mut kept);
            assert_eq!(promises().broken(&kept), [found]);
        }
    }

    #[test]
    fn what_nobody_asked_for_is_found() {
        let mut kept = kept();
        kept.missions.insert(("2025-01-03".into(), "video".into(), "pt".into()));
        kept.extractions.insert("b".into());
        assert_eq!(
            promises().broken(&kept),
            [
                "1 missions are there that nobody asked for: 2025-01-03 video pt",
                "1 extractions are there twice: b"
            ]
        );
    }
}
