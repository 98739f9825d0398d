//! Every word of the pages, in Portuguese and English.
//!
//! A text is a field, so a page that asks for one that is not there does not compile, and none can
//! be missing in one of the languages. Each room of the pages has its own file.

pub(crate) mod audit;
pub(crate) mod common;
pub(crate) mod errors;
pub(crate) mod extractions;
pub(crate) mod help;
pub(crate) mod keys;
pub(crate) mod login;
pub(crate) mod missions;
pub(crate) mod overview;
pub(crate) mod problems;
pub(crate) mod schedules;
pub(crate) mod settings;
pub(crate) mod tasks;
pub(crate) mod things;
pub(crate) mod webhooks;
pub(crate) mod words;

pub(crate) use audit::Audit;
pub(crate) use common::Common;
pub(crate) use extractions::Extractions;
pub(crate) use help::Help;
pub(crate) use keys::Keys;
pub(crate) use login::Login;
pub(crate) use missions::Missions;
pub(crate) use overview::Overview;
pub(crate) use schedules::Schedules;
pub(crate) use settings::Settings;
pub(crate) use tasks::Tasks;
pub(crate) use things::Things;
pub(crate) use webhooks::Webhooks;
pub(crate) use words::Words;

/// The languages of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Portuguese,
    English,
}

impl Language {
    /// As a page and a cookie name it.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::Portuguese => "pt-BR",
            Self::English => "en",
        }
    }

    /// The one a tag means: `pt`, `pt-BR`, `en-US`.
    pub(crate) fn parse(tag: &str) -> Option<Self> {
        match tag.split('-').next()?.trim().to_ascii_lowercase().as_str() {
            "pt" => Some(Self::Portuguese),
            "en" => Some(Self::English),
            _ => None,
        }
    }

    /// What a browser would rather read, of what there is.
    pub(crate) fn preferred(accepted: &str) -> Self {
        let weighed = accepted.split(',').filter_map(|item| {
            let (tag, rest) = item.split_once(';').unwrap_or((item, ""));
            let weight = rest.trim().strip_prefix("q=").map_or(Some(1.0), |q| q.parse().ok())?;
            Some((Self::parse(tag)?, weight))
        });
        let mut best: Option<(Self, f32)> = None;
        for (language, weight) in weighed {
            if weight > 0.0 && best.is_none_or(|(_, most)| weight > most) {
                best = Some((language, weight));
            }
        }
        best.map_or(Self::English, |(language, _)| language)
    }
}

/// Declares the texts of a room, each in Portuguese and English.
macro_rules! texts {
    ($(#[$meta:meta])* $room:ident { $($name:ident: $portuguese:literal | $english:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[allow(clippy::struct_field_names, reason = "texts are named by what they say")]
        pub(crate) struct $room {
            $(pub(crate) $name: &'static str,)+
        }

        impl $room {
            pub(crate) fn of(language: $crate::ui::texts::Language) -> &'static Self {
                static PORTUGUESE: $room = $room { $($name: $portuguese,)+ };
                static ENGLISH: $room = $room { $($name: $english,)+ };
                match language {
                    $crate::ui::texts::Language::Portuguese => &PORTUGUESE,
                    $crate::ui::texts::Language::English => &ENGLISH,
                }
            }
        }
    };
}
pub(crate) use texts;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_s_preference_decides_among_what_there_is() {
        for (accepted, language) in [
            ("", Language::English),
            ("de-DE,fr;q=0.8", Language::English),
            ("pt-BR,pt;q=0.9,en;q=0.8", Language::Portuguese),
            ("de,en;q=0.5,pt;q=0.9", Language::Portuguese),
            ("en-GB, pt;q=0.9", Language::English),
            ("pt;q=0, en;q=0.1", Language::English),
            ("pt;q=x,en", Language::English),
        ] {
            assert_eq!(Language::preferred(accepted), language, "{accepted}");
        }
    }
}
