//! HTTP to a server on loopback, in as few lines as it takes: one request per connection.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

const PATIENCE: Duration = Duration::from_secs(5);

/// Sends a request and returns the status and the body of the answer.
pub(crate) fn send(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<(u16, String)> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    if !body.is_empty() {
        request.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        let _infallible = write!(request, "{name}: {value}\r\n");
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without an end")?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body =
        if is_chunked { joined(body).context("chunks that break off")? } else { body.into() };
    Ok((status.context("an answer without a status")?, body))
}

/// The chunks of a body, without what frames them.
fn joined(mut body: &str) -> Option<String> {
    let mut whole = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n")?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.push_str(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_and_what_breaks_off_is_not_taken_for_whole() {
        assert_eq!(
            joined("3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n").as_deref(),
            Some("abc0123456789")
        );
        assert_eq!(joined("0\r\n\r\n").as_deref(), Some(""));
        for broken in ["", "3\r\nab", "3\r\nabc\r\n", "x\r\n"] {
            assert_eq!(joined(broken), None, "{broken:?}");
        }
    }
}
