//! Where a webhook is, and the secret that it shares with us: sealed together, so that they change
//! together.

use std::fmt;

use lavra_db::Secrets;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::{Error, Result};
use crate::model::WebhookId;

const LONGEST_URL: usize = 2000;
const SECRET_LENGTH: std::ops::RangeInclusive<usize> = 16..=200;

#[derive(Clone)]
pub(crate) struct Destination {
    url: Url,
    secret: SecretString,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({})", self.shown())
    }
}

#[derive(Serialize, Deserialize)]
struct Plain {
    url: String,
    secret: String,
}

impl Destination {
    pub(crate) fn parse(url: &SecretString, secret: &SecretString) -> Result<Self> {
        Ok(Self { url: address(url.expose_secret())?, secret: key(secret)? })
    }

    /// The same with another address or another secret.
    pub(crate) fn changed(
        self,
        url: Option<&SecretString>,
        secret: Option<&SecretString>,
    ) -> Result<Self> {
        Ok(Self {
            url: url.map(|url| address(url.expose_secret())).transpose()?.unwrap_or(self.url),
            secret: secret.map(key).transpose()?.unwrap_or(self.secret),
        })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn secret(&self) -> &str {
        self.secret.expose_secret()
    }

    /// As people may see it. Paths and queries often are the credential, and so is a user.
    pub(crate) fn shown(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{host}{port}/…", self.url.scheme())
    }

    /// Seals it under a new name, which it returns.
    pub(crate) async fn seal(&self, id: WebhookId, secrets: &Secrets) -> Result<String> {
        let name = format!("webhooks/{id}/{}", uuid::Uuid::new_v4().simple());
        let plain = Plain { url: self.url.to_string(), secret: self.secret().to_owned() };
        let text = serde_json::to_string(&plain).map_err(|_| Error::Unreadable)?;
        secrets.put(&name, &text.into()).await?;
        Ok(name)
    }

    /// `None` if nothing is sealed under that name (any more).
    pub(crate) async fn open(name: &str, secrets: &Secrets) -> Result<Option<Self>> {
        let Some(text) = secrets.get(name).await? else { return Ok(None) };
        let plain: Plain =
            serde_json::from_str(text.expose_secret()).map_err(|_| Error::Unreadable)?;
        let url = Url::parse(&plain.url).map_err(|_| Error::Unreadable)?;
        Ok(Some(Self { url, secret: plain.secret.into() }))
    }
}

/// What is wrong is said without the URL.
fn address(text: &str) -> Result<Url> {
    let wrong =
        |why: &str| Error::Invalid(format!("the URL {why}: as in https://example.com/hooks/lavra"));
    if text.len() > LONGEST_URL {
        return Err(wrong(&format!("has more than {LONGEST_URL} characters")));
    }
    let url = Url::parse(text.trim()).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => wrong("has no scheme"),
        error => wrong(&format!("cannot be read ({error})")),
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is not http or https"));
    }
    if url.fragment().is_some() {
        return Err(wrong("has a fragment, which is never sent"));
    }
    Ok(url)
}

fn key(secret: &SecretString) -> Result<SecretString> {
    let text = secret.expose_secret();
    let is_printable = text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    if !SECRET_LENGTH.contains(&text.len()) || !is_printable {
        let (least, most) = SECRET_LENGTH.into_inner();
        return Err(Error::Invalid(format!(
            "a secret has {least} to {most} characters, none of them a space or beyond ASCII"
        )));
    }
    Ok(secret.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str, secret: &str) -> Result<Destination> {
        Destination::parse(&url.to_owned().into(), &secret.to_owned().into())
    }

    const SECRET: &str = "0123456789abcdef";

    #[test]
    fn only_the_scheme_and_the_host_are_shown() {
        for (url, shown) in [
            ("https://hooks.example.com/services/T1/B2/xyz", "https://hooks.example.com/…"),
            ("https://user:pass@example.com:8443/a?token=xyz", "https://example.com:8443/…"),
            ("http://[::1]:9/?xyz", "http://[::1]:9/…"),
        ] {
            let destination = parse(url, SECRET).unwrap();
            assert_eq!(destination.shown(), shown);
            assert!(!format!("{destination:?}").contains("xyz"));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_repeated() {
        for (url, why) in [
            ("example.com/xyz", "no scheme"),
            ("ftp://example.com/xyz", "not http"),
            ("https://example.com/#xyz", "fragment"),
            ("https:///", "cannot be read"),
            (&format!("https://example.com/xyz{}", "a".repeat(2000)), "more than 2000"),
        ] {
            let error = parse(url, SECRET).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("xyz"), "{error}");
        }
    }

    #[test]
    fn a_secret_that_is_short_or_cannot_be_typed_is_refused() {
        for bad in ["", "short", "0123456789abcdé", "0123456789 abcdef", &"x".repeat(201)] {
            let error = parse("https://example.com", bad).unwrap_err().to_string();
            assert!(error.contains("16 to 200"), "{error}");
        }
    }
}
