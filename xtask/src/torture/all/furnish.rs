//! What is made and set before anything is killed.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::api::Api;
use super::parts::{PROXIES, Parts, WORKER_KEY, WRITER_KEY};

/// Retries of a phase of a mission.
pub(super) const MAX_RETRIES: u32 = 5;

/// Workers, proxies and a writer, before anything is killed.
pub(super) fn furnish(parts: &Parts) -> Result<()> {
    let api = Api::new(parts);
    for (number, port) in (1..).zip(parts.workers()) {
        let url = format!("http://127.0.0.1:{port}");
        let worker = json!({
            "name": format!("worker-{number}"), "url": url, "storage_domain": url,
            "api_key": WORKER_KEY,
        });
        made(&api, "/fleet/workers", &worker)?;
    }
    for number in 0..PROXIES {
        let scheme = if number % 2 == 0 { "" } else { "socks5://" };
        let proxy = json!({
            "name": format!("proxy-{}", number + 1), "host": format!("{scheme}127.0.0.1"),
            "port": parts.first_proxy + number, "username": "user",
            "password": "proxy-password",
        });
        made(&api, "/fleet/proxies", &proxy)?;
    }
    for port in parts.writers() {
        let writer = json!({
            "name": "writer", "url": format!("http://127.0.0.1:{port}"), "api_key": WRITER_KEY,
        });
        made(&api, "/fleet/writers", &writer)?;
    }
    let settings = json!({ "max_retries": MAX_RETRIES });
    api.ask("PUT", "/fleet/settings", &settings).context("the settings are not taken")?;
    Ok(())
}

fn made(api: &Api, path: &str, body: &Value) -> Result<()> {
    let made = api.ask("POST", path, body);
    ensure!(made.is_some(), "{path} does not take {body}");
    Ok(())
}
