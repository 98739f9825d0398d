//! What a caller shows, and what is kept of it: a hash, from which it cannot be found.

use std::fmt;

use lavra_db::hex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::model::KeyId;

/// 32 letters that cannot be taken for each other, so that five random bits are one letter.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// 260 bits.
const SECRET_LETTERS: usize = 52;
/// What every key begins with, so that people and scanners know one when they see it.
pub(super) const PREFIX: &str = "lavra_";

/// Random text of so many letters.
pub(super) fn random(letters: usize) -> String {
    let bytes = rand::random_iter::<u8>().take(letters);
    bytes.map(|byte| char::from(LETTERS[usize::from(byte & 31)])).collect()
}

/// A secret that nobody can guess, so that a plain hash of it is enough.
pub(crate) fn secret() -> String {
    random(SECRET_LETTERS)
}

/// Whether a text could be what [`secret`] made.
pub(super) fn is_secret(text: &str) -> bool {
    text.len() == SECRET_LETTERS && text.bytes().all(|byte| LETTERS.contains(&byte))
}

/// SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// As it is stored.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        let digits: Option<Vec<u8>> =
            text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
        let bytes: Vec<u8> = digits?
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, half| byte << 4 | half))
            .collect();
        bytes.try_into().ok().map(Self)
    }

    /// Takes as long for a wrong one as for the right one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}

/// A key as its holder has it: `lavra_{id}_{secret}`.
pub(super) struct KeyText {
    pub(super) id: KeyId,
    pub(super) hash: Hash,
}

impl KeyText {
    /// A new one, with the text that is shown once.
    pub(super) fn new() -> (Self, String) {
        let (id, secret) = (KeyId::new(), secret());
        let text = format!("{PREFIX}{id}_{secret}");
        (Self { id, hash: Hash::of(&secret) }, text)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let id = KeyId::parse(id)?;
        is_secret(secret).then(|| Self { id, hash: Hash::of(secret) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_made_and_no_two_are_the_same() {
        let (made, text) = KeyText::new();
        let read = KeyText::parse(&text).unwrap();
        assert_eq!((read.id, read.hash), (made.id, made.hash));
        assert_eq!(text.len(), 6 + 8 + 1 + 52, "{text}");
        assert_ne!(KeyText::new().1, KeyText::new().1);
    }

    #[test]
    fn what_is_no_key_is_none() {
        let (_, text) = KeyText::new();
        let long = format!("{text}0");
        let wrong = ["", "lavra_", "lavra_a_b", &text[1..], &text[..text.len() - 1], &long];
        for wrong in wrong.into_iter().chain([text.to_uppercase().as_str(), "lavra_abcdefgh_é"]) {
            assert!(KeyText::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_hash_is_kept_as_text_and_shows_nothing_of_itself() {
        let hash = Hash::of("abc");
        let text = hash.to_hex();
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Hash::from_hex(&text), Some(hash));
        assert!(Hash::from_hex(&text[2..]).is_none() && Hash::from_hex("x").is_none());
        assert!(hash.is_same(&Hash::of("abc")) && !hash.is_same(&Hash::of("abd")));
        assert!(!format!("{hash:?}").contains("ba78"));
    }
}
