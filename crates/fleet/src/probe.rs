//! Whether a proxy forwards.

use secrecy::{ExposeSecret, SecretString};

use crate::model::Proxy;
use crate::service::{LONGEST_TEST, Tested};

/// Answers to everyone, and says nothing about who asks.
pub const TARGET: &str = "http://www.gstatic.com/generate_204";

/// One request through it to `target`.
pub(crate) async fn proxy(proxy: &Proxy, password: Option<&SecretString>, target: &str) -> Tested {
    match through(proxy, password, target).await {
        Ok(status) => Tested { ok: status != 407 && status < 500, said: status.to_string() },
        Err(error) => Tested { ok: false, said: error },
    }
}

async fn through(
    proxy: &Proxy,
    password: Option<&SecretString>,
    target: &str,
) -> Result<u16, String> {
    let server = proxy.server();
    let url = if server.contains("://") { server } else { format!("http://{server}") };
    let mut way = reqwest::Proxy::all(&url).map_err(|_| "the host cannot be read".to_owned())?;
    if let Some(username) = &proxy.username {
        way = way.basic_auth(username, password.map_or("", ExposeSecret::expose_secret));
    }
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(lavra_db::tls())
        .proxy(way)
        .timeout(LONGEST_TEST)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| error.to_string())?;
    let answer = client.get(target).send().await.map_err(|error| {
        let mut reason: &dyn std::error::Error = &error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        reason.to_string()
    })?;
    Ok(answer.status().as_u16())
}
