//! An HTTP proxy: requests in absolute form, and `CONNECT`.
//!
//! A request in absolute form goes on as one of its server's own, with `connection: close`, so that the
//! answer ends with the connection and can be passed back as it is.

use std::fmt::Write as _;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use super::fault::ProxyFaultKind;
use super::relay::{Requests, relay};
use super::{Inner, count};

const LONGEST_HEAD: usize = 64 << 10;

pub(super) async fn pass(
    proxy: &Inner,
    mut client: TcpStream,
    fault: Option<ProxyFaultKind>,
) -> io::Result<()> {
    let (head, rest) = head(&mut client).await?;
    let Some(request) = Request::parse(&head) else {
        return refuse(&mut client, "400 Bad Request", "").await;
    };
    if fault == Some(ProxyFaultKind::Deny) || !is_known(proxy, &request) {
        count(&proxy.counts.denied, 1);
        let challenge = "proxy-authenticate: Basic realm=\"world\"\r\n";
        return refuse(&mut client, "407 Proxy Authentication Required", challenge).await;
    }
    let Some((host, port)) = request.place() else {
        return refuse(&mut client, "400 Bad Request", "").await;
    };
    let Ok(mut server) = TcpStream::connect((host.as_str(), port)).await else {
        return refuse(&mut client, "502 Bad Gateway", "").await;
    };
    if request.method == "CONNECT" {
        count(&proxy.counts.tunnels, 1);
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        server.write_all(&rest).await?;
        return relay(proxy, client, server, fault, Requests::Counted).await;
    }
    count(&proxy.counts.http_requests, 1);
    count(&proxy.counts.requests, 1);
    let onward = [request.onward().as_bytes(), &rest].concat();
    server.write_all(&onward).await?;
    count(&proxy.counts.bytes_up, onward.len() as u64);
    relay(proxy, client, server, fault, Requests::Uncounted).await
}

/// The head of a request, and what came with it.
async fn head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        if bytes.len() > LONGEST_HEAD || client.read_buf(&mut bytes).await? == 0 {
            return Err(io::Error::other("a request without an end"));
        }
    }
}

async fn refuse(client: &mut TcpStream, status: &str, headers: &str) -> io::Result<()> {
    let text =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n");
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}

struct Request<'a> {
    method: &'a str,
    target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    fn parse(head: &'a str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.trim(), value.trim())).collect();
        Some(Self { method, target, headers })
    }

    fn place(&self) -> Option<(String, u16)> {
        let whole = match self.method {
            "CONNECT" => format!("http://{}", self.target),
            _ => self.target.to_owned(),
        };
        let url = Url::parse(&whole).ok()?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some((host, url.port_or_known_default()?))
    }

    /// As the server is asked.
    fn onward(&self) -> String {
        let path = Url::parse(self.target).map(|url| match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        });
        let path = path.unwrap_or_else(|_| "/".to_owned());
        let mut text = format!("{} {path} HTTP/1.1\r\n", self.method);
        for (name, value) in &self.headers {
            let own = name.to_ascii_lowercase();
            if own != "connection" && !own.starts_with("proxy-") {
                let _never_fails = write!(text, "{name}: {value}\r\n");
            }
        }
        text.push_str("connection: close\r\n\r\n");
        text
    }
}

fn is_known(proxy: &Inner, request: &Request<'_>) -> bool {
    let Some((name, password)) = &proxy.user else { return true };
    let mut given = request
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"))
        .filter_map(|(_, value)| value.split_once(' '));
    let wanted = base64(format!("{name}:{password}").as_bytes());
    given.any(|(scheme, text)| scheme.eq_ignore_ascii_case("basic") && text.trim() == wanted)
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let whole = piece.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte))
            << (8 * (3 - piece.len()));
        for place in 0..4 {
            let letter = LETTERS[(whole >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= piece.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_others_write_it() {
        for (plain, text) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("user:p@ss", "dXNlcjpwQHNz"),
        ] {
            assert_eq!(base64(plain.as_bytes()), text);
        }
    }

    #[test]
    fn a_request_goes_on_without_what_is_the_proxy_s() {
        let head = "GET http://127.0.0.1:9/v1/ads?page=2 HTTP/1.1\r\nhost: 127.0.0.1:9\r\n\
                    Proxy-Authorization: Basic eA==\r\nConnection: keep-alive\r\n\r\n";
        let request = Request::parse(head).unwrap();
        assert_eq!(request.place(), Some(("127.0.0.1".to_owned(), 9)));
        let onward = request.onward();
        assert!(onward.starts_with("GET /v1/ads?page=2 HTTP/1.1\r\nhost: 127.0.0.1:9\r\n"));
        assert!(!onward.to_lowercase().contains("proxy") && onward.contains("connection: close"));
    }
}
