//! Keys and sessions as they are stored.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::Role;
use super::credential::{Hash, random};

/// A session that nobody uses for so long is over.
const IDLE: SignedDuration = SignedDuration::from_hours(12);
/// No session lasts longer.
pub(super) const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

const ID_LETTERS: usize = 8;

/// The part of a key that may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub String);

impl KeyId {
    pub(super) fn new() -> Self {
        Self(random(ID_LETTERS))
    }

    /// Whether a text looks like one that [`KeyId::new`] made.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        (plain && text.len() == ID_LETTERS).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub id: KeyId,
    pub name: String,
    pub role: Role,
    pub created_at: Timestamp,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// Whether a key opens anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Valid,
    Expired,
    Revoked,
}

impl Key {
    pub fn standing(&self, now: Timestamp) -> Standing {
        if self.revoked_at.is_some() {
            Standing::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            Standing::Expired
        } else {
            Standing::Valid
        }
    }
}

/// What a person got for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Of what stands in the cookie.
    pub hash: Hash,
    pub key: KeyId,
    pub created_at: Timestamp,
    /// To the minute.
    pub seen_at: Timestamp,
}

impl Session {
    /// Whether it is over by itself; that its key is, is another question.
    pub fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.seen_at) >= IDLE || now.duration_since(self.created_at) >= LONGEST
    }

    /// When others must have been seen last, and when made, that are over as this one begins.
    pub(super) fn over_before(&self) -> (Timestamp, Timestamp) {
        let before = |span| self.created_at.checked_sub(span).unwrap_or(Timestamp::MIN);
        (before(IDLE), before(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_key_ends_at_its_end_or_when_it_is_revoked() {
        let now = at("2026-01-01T00:00:00Z");
        let key = |expires_at, revoked_at| Key {
            id: KeyId::new(),
            name: "a".into(),
            role: Role::Viewer,
            created_at: now,
            last_used_at: None,
            expires_at,
            revoked_at,
        };
        assert_eq!(key(None, None).standing(now), Standing::Valid);
        assert_eq!(key(Some(at("2026-01-01T00:00:01Z")), None).standing(now), Standing::Valid);
        assert_eq!(key(Some(now), None).standing(now), Standing::Expired);
        assert_eq!(key(Some(now), Some(now)).standing(now), Standing::Revoked);
    }

    #[test]
    fn a_session_ends_when_nobody_uses_it_and_after_a_week_at_most() {
        let session = |seen: &str| Session {
            hash: Hash::of("x"),
            key: KeyId::new(),
            created_at: at("2026-01-01T00:00:00Z"),
            seen_at: at(seen),
        };
        let used = session("2026-01-05T00:00:00Z");
        assert!(!used.is_over(at("2026-01-05T11:59:59Z")));
        assert!(used.is_over(at("2026-01-05T12:00:00Z")));
        let to_the_end = session("2026-01-07T23:59:00Z");
        assert!(!to_the_end.is_over(at("2026-01-07T23:59:59Z")));
        assert!(to_the_end.is_over(at("2026-01-08T00:00:00Z")));
    }

    #[test]
    fn only_what_could_be_an_id_is_one() {
        assert!(KeyId::parse(&KeyId::new().0).is_some());
        for wrong in ["", "abc", "abcdefgh1", "ABCDEFGH", "abc-efgh", "abcdéfg"] {
            assert!(KeyId::parse(wrong).is_none(), "{wrong}");
        }
    }
}
