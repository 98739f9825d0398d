//! The two cookies: of a session, and of a visit without one.
//!
//! Scripts cannot read them and no other site's page sends them. Where the server is reached by https
//! their names say so to the browser (`__Host-`), which then takes them from nobody else.

use axum::http::{HeaderMap, HeaderValue, header};

use super::credential::is_secret;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    Visit,
}

/// How cookies are written here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cookies {
    /// Whether people reach the server by https.
    pub(super) secure: bool,
}

impl Cookies {
    fn name(self, kind: Kind) -> &'static str {
        match (kind, self.secure) {
            (Kind::Session, false) => "lavra_session",
            (Kind::Session, true) => "__Host-lavra_session",
            (Kind::Visit, false) => "lavra_visit",
            (Kind::Visit, true) => "__Host-lavra_visit",
        }
    }

    /// What was set, if the browser sends it; two that differ are none.
    pub(super) fn read(self, kind: Kind, headers: &HeaderMap) -> Option<&str> {
        let name = self.name(kind);
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        let mut values = pairs
            .filter(|(found, _)| found.trim() == name)
            .map(|(_, value)| value.trim())
            .filter(|value| is_secret(value));
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }

    /// `Set-Cookie`; without a time it lasts as long as the browser does.
    pub(super) fn set(self, kind: Kind, value: &str, seconds: Option<i64>) -> HeaderValue {
        let name = self.name(kind);
        let mut text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict");
        if self.secure {
            text.push_str("; Secure");
        }
        if let Some(seconds) = seconds {
            text.push_str("; Max-Age=");
            text.push_str(&seconds.to_string());
        }
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }

    pub(super) fn clear(self, kind: Kind) -> HeaderValue {
        self.set(kind, "", Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::credential::secret;

    const PLAIN: Cookies = Cookies { secure: false };

    fn sent(lines: &[&str]) -> HeaderMap {
        let lines = lines.iter().map(|line| (header::COOKIE, line.parse().unwrap()));
        lines.collect()
    }

    #[test]
    fn ours_is_found_among_others() {
        let value = secret();
        let line = format!("a=b; lavra_session={value};c=d=e");
        assert_eq!(PLAIN.read(Kind::Session, &sent(&[&line])), Some(value.as_str()));
        assert_eq!(PLAIN.read(Kind::Session, &sent(&["x=y", &line])), Some(value.as_str()));
        assert_eq!(PLAIN.read(Kind::Visit, &sent(&[&line])), None);
        assert_eq!(Cookies { secure: true }.read(Kind::Session, &sent(&[&line])), None);
    }

    #[test]
    fn what_we_cannot_have_set_is_none() {
        let (one, two) = (secret(), secret());
        for line in [
            String::new(),
            "lavra_session".into(),
            "lavra_session=".into(),
            "lavra_session=../../x".into(),
            format!("lavra_session={one}; lavra_session={two}"),
        ] {
            assert_eq!(PLAIN.read(Kind::Session, &sent(&[&line])), None, "{line}");
        }
    }

    #[test]
    fn by_https_the_browser_is_told_to_keep_it_there() {
        assert_eq!(
            PLAIN.set(Kind::Session, "x", Some(60)),
            "lavra_session=x; Path=/; HttpOnly; SameSite=Strict; Max-Age=60"
        );
        assert_eq!(
            Cookies { secure: true }.set(Kind::Visit, "x", None),
            "__Host-lavra_visit=x; Path=/; HttpOnly; SameSite=Strict; Secure"
        );
    }
}
