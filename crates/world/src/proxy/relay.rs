//! Bytes, both ways, counted; the way back slow or cut where that is wanted.

use std::io;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::fault::ProxyFaultKind;
use super::{Inner, count};

const PIECE: usize = 16 << 10;
const METHODS: [&[u8]; 5] = [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE "];

/// Whether requests that pass are to be counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requests {
    Counted,
    Uncounted,
}

pub(super) async fn relay(
    proxy: &Inner,
    client: TcpStream,
    server: TcpStream,
    fault: Option<ProxyFaultKind>,
    requests: Requests,
) -> io::Result<()> {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let up = up(proxy, from_client, to_server, requests);
    let down = down(proxy, from_server, to_client, fault);
    tokio::pin!(up, down);
    let mut upward = true;
    loop {
        tokio::select! {
            ended = &mut down => return ended,
            ended = &mut up, if upward => {
                ended?;
                upward = false;
            }
        }
    }
}

async fn up(
    proxy: &Inner,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    requests: Requests,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = from.read(&mut piece).await?;
        let bytes = &piece[..length];
        if length == 0 {
            return to.shutdown().await;
        }
        if requests == Requests::Counted && METHODS.iter().any(|method| bytes.starts_with(method)) {
            count(&proxy.counts.requests, 1);
        }
        write(&mut to, bytes, &proxy.counts.bytes_up).await?;
    }
}

async fn down(
    proxy: &Inner,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    fault: Option<ProxyFaultKind>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut passed = 0;
    loop {
        let length = from.read(&mut piece).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        let mut bytes = &piece[..length];
        if let Some(ProxyFaultKind::Slow { millis }) = fault {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        if let Some(ProxyFaultKind::Cut { bytes: most }) = fault {
            let left = most.saturating_sub(passed) as usize;
            if left < bytes.len() {
                bytes = &bytes[..left];
                write(&mut to, bytes, &proxy.counts.bytes_down).await?;
                count(&proxy.counts.failed, 1);
                return Err(io::Error::other("cut, by design"));
            }
        }
        passed += bytes.len() as u64;
        write(&mut to, bytes, &proxy.counts.bytes_down).await?;
    }
}

async fn write(to: &mut OwnedWriteHalf, bytes: &[u8], counter: &AtomicU64) -> io::Result<()> {
    to.write_all(bytes).await?;
    count(counter, bytes.len() as u64);
    Ok(())
}
