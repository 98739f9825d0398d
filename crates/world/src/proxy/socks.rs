//! SOCKS5 (RFC 1928) with user name and password (RFC 1929).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fault::ProxyFaultKind;
use super::relay::{Requests, relay};
use super::{Inner, count};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NONE_IS_GOOD: u8 = 0xFF;
const CONNECT: u8 = 1;
const UNREACHABLE: u8 = 5;
const NOT_SUPPORTED: u8 = 7;

pub(super) async fn pass(
    proxy: &Inner,
    mut client: TcpStream,
    fault: Option<ProxyFaultKind>,
) -> io::Result<()> {
    if !greet(proxy, &mut client, fault).await? {
        count(&proxy.counts.denied, 1);
        return client.shutdown().await;
    }
    let [_version, command, _reserved, kind] = bytes(&mut client).await?;
    let host = match kind {
        1 => IpAddr::from(Ipv4Addr::from(bytes::<4>(&mut client).await?)).to_string(),
        4 => IpAddr::from(Ipv6Addr::from(bytes::<16>(&mut client).await?)).to_string(),
        _ => text(&mut client).await?,
    };
    let port = u16::from_be_bytes(bytes(&mut client).await?);
    if command != CONNECT {
        return client.write_all(&reply(NOT_SUPPORTED)).await;
    }
    let Ok(server) = TcpStream::connect((host.as_str(), port)).await else {
        return client.write_all(&reply(UNREACHABLE)).await;
    };
    count(&proxy.counts.socks, 1);
    client.write_all(&reply(0)).await?;
    relay(proxy, client, server, fault, Requests::Counted).await
}

/// Whether the client may go on.
async fn greet(
    proxy: &Inner,
    client: &mut TcpStream,
    fault: Option<ProxyFaultKind>,
) -> io::Result<bool> {
    let [_version, many] = bytes(client).await?;
    let mut methods = vec![0; usize::from(many)];
    client.read_exact(&mut methods).await?;
    let denies = fault == Some(ProxyFaultKind::Deny);
    let wanted = if proxy.user.is_some() || denies { PASSWORD } else { NO_AUTHENTICATION };
    if !methods.contains(&wanted) {
        client.write_all(&[VERSION, NONE_IS_GOOD]).await?;
        return Ok(false);
    }
    client.write_all(&[VERSION, wanted]).await?;
    if wanted == NO_AUTHENTICATION {
        return Ok(true);
    }
    let [_version] = bytes(client).await?;
    let given = (text(client).await?, text(client).await?);
    let is_known = !denies && proxy.user.as_ref() == Some(&given);
    client.write_all(&[1, u8::from(!is_known)]).await?;
    Ok(is_known)
}

async fn bytes<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// A text after its length.
async fn text(client: &mut TcpStream) -> io::Result<String> {
    let [length] = bytes(client).await?;
    let mut text = vec![0; usize::from(length)];
    client.read_exact(&mut text).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}
