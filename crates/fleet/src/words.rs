//! Enums that are words in a column, a query and an answer.

/// Declares an enum whose variants are words; each with its doc comment.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];
            /// All the words, for messages.
            pub const WORDS: &[&str] = &[$($word),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().find(|word| word.as_str() == text).copied();
                found.ok_or_else(|| $crate::words::UnknownWord {
                    word: text.to_owned(),
                    known: Self::WORDS.join(", "),
                })
            }
        }
    };
}
pub(crate) use words;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not one of {known}")]
pub struct UnknownWord {
    pub word: String,
    pub known: String,
}
