//! Who may speak to a small service: whoever has its key, or, where it has none, programs of this machine
//! (and no web page in a browser, which its Host or Origin gives away). Who guesses is told to stop.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
const MINUTE: Duration = Duration::from_secs(60);
/// Wrong keys in a minute, after which more of them are told to wait for the rest of it. The right one opens
/// all the same: others must not be able to lock its holder out.
const MOST_WRONG: u32 = 100;

#[derive(Debug)]
pub struct Door {
    /// The key's hash: all that is compared has the same length.
    key: Option<[u8; 32]>,
    /// Since when so many wrong keys were tried.
    wrong: Mutex<(Instant, u32)>,
}

/// What a request says of who sends it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller<'a> {
    /// The key that it shows.
    pub key: Option<&'a [u8]>,
    pub host: Option<&'a [u8]>,
    pub has_origin: bool,
}

/// Why someone is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    WrongKey,
    TooManyKeys,
    /// There is no key, and it is no program of this machine.
    Foreign,
}

impl Door {
    pub fn new(key: Option<&SecretString>) -> Self {
        let key = key.map(|key| Sha256::digest(key.expose_secret().as_bytes()).into());
        Self { key, wrong: Mutex::new((Instant::now(), 0)) }
    }

    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    pub fn admit(&self, caller: &Caller<'_>) -> Result<(), Stranger> {
        let Some(key) = &self.key else {
            return if caller.is_of_this_machine() { Ok(()) } else { Err(Stranger::Foreign) };
        };
        let given = caller.key.map(Sha256::digest);
        if given.is_some_and(|given| bool::from(given.as_slice().ct_eq(key))) {
            return Ok(());
        }
        let mut wrong = self.wrong.lock();
        if wrong.0.elapsed() > MINUTE {
            *wrong = (Instant::now(), 0);
        }
        wrong.1 = wrong.1.saturating_add(1);
        Err(if wrong.1 > MOST_WRONG { Stranger::TooManyKeys } else { Stranger::WrongKey })
    }
}

impl Caller<'_> {
    fn is_of_this_machine(&self) -> bool {
        let host = self.host.and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        !self.has_origin && LOOPBACK.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_key(key: &str) -> Caller<'_> {
        Caller { key: Some(key.as_bytes()), host: Some(b"writer.example"), has_origin: false }
    }

    #[test]
    fn only_the_key_opens_and_who_guesses_is_told_to_wait() {
        let door = Door::new(Some(&"right".to_owned().into()));
        assert_eq!(door.admit(&with_key("right")), Ok(()));
        let near = Caller { host: Some(b"localhost"), ..Caller::default() };
        for wrong in [near, with_key(""), with_key("righ")] {
            assert_eq!(door.admit(&wrong), Err(Stranger::WrongKey));
        }
        for _ in 0..MOST_WRONG {
            let _wrong = door.admit(&near);
        }
        assert_eq!(door.admit(&near), Err(Stranger::TooManyKeys));
        assert_eq!(door.admit(&with_key("right")), Ok(()), "others go on");
    }

    #[test]
    fn without_a_key_only_programs_of_this_machine_are_answered() {
        let door = Door::new(None);
        let at = |host: &'static str| Caller { host: Some(host.as_bytes()), ..Caller::default() };
        for host in ["localhost:8091", "127.0.0.1", "[::1]:8091", "LOCALHOST"] {
            assert_eq!(door.admit(&at(host)), Ok(()), "{host}");
        }
        let from_a_page = Caller { has_origin: true, ..at("localhost") };
        for foreign in
            [at("evil.example"), at("127.0.0.1.evil.example"), Caller::default(), from_a_page]
        {
            assert_eq!(door.admit(&foreign), Err(Stranger::Foreign), "{foreign:?}");
        }
    }
}
