//! How a receiver knows that it was us: HMAC-SHA256 over the time and the body.

use hmac::{Hmac, KeyInit, Mac};
use lavra_db::hex;
use sha2::Sha256;

/// The value of `lavra-signature`. The time is signed as well, so that a request that someone has
/// recorded is worth nothing later.
pub fn sign(secret: &str, timestamp: i64, body: &[u8]) -> String {
    // A key of any length will do.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(timestamp.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    format!("v1={}", hex(&mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac s3cret` says.
    #[test]
    fn it_is_what_others_compute() {
        let expected = "v1=1698a50bc74d1ff1db85c4e0a5297c2ad9fdba245d5737cdb789e4cc6e098940";
        assert_eq!(sign("s3cret", 1_700_000_000, br#"{"a":1}"#), expected);
    }

    #[test]
    fn the_secret_the_time_and_the_body_all_count() {
        let all = [
            sign("a", 1, b"x"),
            sign("b", 1, b"x"),
            sign("a", 2, b"x"),
            sign("a", 1, b"y"),
            sign("a", 11, b".x"),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "{place}");
        }
    }
}
