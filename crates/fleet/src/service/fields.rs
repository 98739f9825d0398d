//! What people say of workers, proxies and writers, checked.

use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::error::{Error, Result};

pub(super) fn name(text: &str, most: usize) -> Result<String> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > most || text.chars().any(char::is_control) {
        return Err(Error::Invalid(format!("a name has 1 to {most} characters in one line")));
    }
    Ok(text.to_owned())
}

/// The base URL of a worker or a writer.
pub(super) fn address(text: &str) -> Result<String> {
    let wrong =
        |why: &str| Error::Invalid(format!("the URL {why}: as in https://worker.example.com"));
    if text.len() > 500 {
        return Err(wrong("has more than 500 characters"));
    }
    let url = Url::parse(text.trim()).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => wrong("has no scheme"),
        error => wrong(&format!("cannot be read ({error})")),
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is not http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("has credentials in it, which would show in logs: use the API key"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has a query or a fragment"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Where results are: a host with a path at most; a scheme is kept.
pub(super) fn domain(text: &str) -> Result<String> {
    let text = text.trim().trim_end_matches('/');
    let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    address(&whole).map_err(|_| {
        let example = "as in storage.example.com";
        Error::Invalid(format!("the storage domain {text:?} cannot be read: {example}"))
    })?;
    if text.len() > 255 {
        return Err(Error::Invalid("the storage domain has more than 255 characters".into()));
    }
    Ok(text.to_owned())
}

/// The host of a proxy, with a scheme where it is no HTTP proxy.
pub(super) fn host(text: &str) -> Result<String> {
    let text = text.trim().trim_end_matches('/');
    let wrong = || {
        Error::Invalid(format!(
            "the host {text:?} cannot be read: as in proxy.example.com or socks5://10.0.0.7, \
             port, user name and password apart"
        ))
    };
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let is_known = matches!(scheme, "http" | "https" | "socks5" | "socks5h");
    let bare = rest.trim_start_matches('[').trim_end_matches(']');
    let is_host = url::Host::parse(bare).is_ok() || bare.parse::<std::net::IpAddr>().is_ok();
    if !is_known || !is_host || text.len() > 200 {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

/// None where it is empty.
pub(super) fn username(text: &str) -> Result<Option<String>> {
    if text.chars().count() > 100 || text.chars().any(char::is_control) {
        return Err(Error::Invalid("a user name has at most 100 characters in one line".into()));
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

pub(super) fn port(number: i32) -> Result<i32> {
    if (1..=65535).contains(&number) {
        return Ok(number);
    }
    Err(Error::Invalid(format!("{number} is no port: from 1 to 65535")))
}

pub(super) fn key(secret: &SecretString) -> Result<SecretString> {
    let text = secret.expose_secret();
    let is_sendable = text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    if text.is_empty() || text.len() > 200 || !is_sendable {
        let text = "an API key has 1 to 200 characters, none of them a space or beyond ASCII";
        return Err(Error::Invalid(text.into()));
    }
    Ok(secret.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_bases_without_credentials() {
        assert_eq!(address("https://w.example.com/").unwrap(), "https://w.example.com");
        assert_eq!(address("http://127.0.0.1:81/w/3").unwrap(), "http://127.0.0.1:81/w/3");
        for (text, why) in [
            ("w.example.com", "no scheme"),
            ("ftp://w.example.com", "not http"),
            ("https://a:b@w.example.com", "credentials"),
            ("https://w.example.com/?a=1", "query"),
            ("https://", "cannot be read"),
        ] {
            let error = address(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_of_proxies_have_no_port_and_no_credentials() {
        for good in ["proxy.example.com", "10.0.0.1", "socks5://10.0.0.7", "[::1]"] {
            assert!(host(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "user@host", "host:80", "ftp://host", "http://"] {
            assert!(host(bad).is_err(), "{bad}");
        }
        assert!(port(70_000).unwrap_err().to_string().contains("65535"));
        assert!(port(0).is_err() && port(-1).is_err() && port(8080).is_ok());
    }
}
