//! How many of something a request asks for, checked where it is read.

use serde::{Deserialize, Deserializer, de};

/// 1 to `MOST`, and `USUAL` where nothing is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit<const USUAL: usize, const MOST: usize>(pub(crate) usize);

impl<const USUAL: usize, const MOST: usize> Default for Limit<USUAL, MOST> {
    fn default() -> Self {
        Self(USUAL)
    }
}

impl<'de, const USUAL: usize, const MOST: usize> Deserialize<'de> for Limit<USUAL, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limit = usize::deserialize(deserializer)?;
        if (1..=MOST).contains(&limit) {
            Ok(Self(limit))
        } else {
            Err(de::Error::custom(format_args!("must be between 1 and {MOST}")))
        }
    }
}
