//! The proxy behind which a session stands.

use std::net::SocketAddr;
use std::time::Duration;

use lavra_db::Keyring;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use url::Url;

/// An HTTP or SOCKS5 proxy, with who may use it. Debug hides the password.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    url: Url,
    username: Option<String>,
    password: Option<SecretString>,
}

/// The same as a file may have it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SealedProxy {
    server: String,
    username: Option<String>,
    password: Option<Vec<u8>>,
}

const SOCKS_PORT: u16 = 1080;

impl Proxy {
    /// `server` is `host:port`, with `socks5://` and the like before it where it is no HTTP proxy.
    pub(crate) fn parse(
        server: &str,
        username: Option<String>,
        password: Option<SecretString>,
    ) -> Result<Self, String> {
        let wrong =
            || "proxy.server is host:port, or socks5://host:port, without user or path".to_owned();
        let whole =
            if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
        let url = Url::parse(&whole).map_err(|_| wrong())?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none();
        let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
        if !is_plain || !is_known || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        Ok(Self { url, username, password })
    }

    pub(crate) fn server(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    pub(crate) fn for_client(&self) -> reqwest::Result<reqwest::Proxy> {
        let proxy = reqwest::Proxy::all(self.url.clone())?;
        Ok(match &self.username {
            Some(name) => {
                let password = self.password.as_ref().map_or("", |text| text.expose_secret());
                proxy.basic_auth(name, password)
            }
            None => proxy,
        })
    }

    /// Whether anybody listens there.
    pub(crate) async fn reach(&self, within: Duration) -> Result<(), Unreached> {
        let host = self.url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or(SOCKS_PORT);
        let reach = async {
            let all = tokio::net::lookup_host((host, port)).await?;
            let all: Vec<SocketAddr> = all.collect();
            TcpStream::connect(all.as_slice()).await
        };
        match tokio::time::timeout(within, reach).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Unreached::Refused(error.to_string())),
            Err(_) => Err(Unreached::Silent),
        }
    }

    /// `name` is whose it is: sealed for one session it opens for no other.
    pub(crate) fn seal(&self, keyring: &Keyring, name: &str) -> lavra_db::Result<SealedProxy> {
        let password = self.password.as_ref();
        let password = password.map(|text| keyring.seal(name, text.expose_secret())).transpose()?;
        Ok(SealedProxy {
            server: self.server().to_owned(),
            username: self.username.clone(),
            password,
        })
    }
}

impl SealedProxy {
    pub(crate) fn open(self, keyring: &Keyring, name: &str) -> Result<Proxy, String> {
        let password = self.password.map(|sealed| keyring.open(name, &sealed)).transpose();
        let password = password.map_err(|_| "its password was sealed with another key")?;
        Proxy::parse(&self.server, self.username, password)
    }
}

#[derive(Debug)]
pub(crate) enum Unreached {
    Refused(String),
    Silent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shows_the_password() {
        let proxy = Proxy::parse("x:1", Some("u".into()), Some("marker-secret".into())).unwrap();
        assert!(!format!("{proxy:?}").contains("marker-secret"));
        let keyring = Keyring::parse(&Keyring::generate().into()).unwrap();
        let sealed = proxy.seal(&keyring, "a").unwrap();
        let text = serde_json::to_string(&sealed).unwrap();
        assert!(!text.contains("marker-secret"));
        let read: SealedProxy = serde_json::from_str(&text).unwrap();
        assert!(read.clone().open(&keyring, "b").is_err());
        let opened = read.open(&keyring, "a").unwrap();
        assert_eq!(opened.password.unwrap().expose_secret(), "marker-secret");
    }
}
