//! Connections of a proxy: accepted, looked at, passed on.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::fault::ProxyFaultKind;
use super::{ForwardProxy, count, http, socks};

const SOCKS5: u8 = 5;
/// Between tries to have a port back.
const AGAIN: Duration = Duration::from_millis(20);

impl ForwardProxy {
    /// Serves on the listener, which must be on loopback, until told to stop; then all connections are
    /// dropped at once.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let reason = "a world is served on loopback only, such as 127.0.0.1";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let mut listener = Some(listener);
        let mut connections = JoinSet::new();
        loop {
            let turned = self.inner.turned.notified();
            tokio::pin!(turned);
            turned.as_mut().enable();
            if self.is_closed() {
                listener = None;
                tokio::select! {
                    () = turned => continue,
                    () = stop.cancelled() => return Ok(()),
                }
            }
            let open = match listener.take() {
                Some(open) => open,
                None => bound(address, &stop).await?,
            };
            tokio::select! {
                accepted = open.accept() => match accepted {
                    Ok((stream, _)) => {
                        let proxy = self.clone();
                        connections.spawn(async move { proxy.connection(stream).await });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(AGAIN).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                () = turned => {}
                () = stop.cancelled() => return Ok(()),
            }
            listener = Some(open);
        }
    }

    fn is_closed(&self) -> bool {
        self.fault().is_some_and(|fault| fault.kind == ProxyFaultKind::Refuse)
    }

    async fn connection(&self, stream: TcpStream) {
        let _slower_without = stream.set_nodelay(true);
        let number = count(&self.inner.counts.connections, 1);
        let fault = self.fault().filter(|fault| number > fault.after).map(|fault| fault.kind);
        if let Some(ProxyFaultKind::Reset | ProxyFaultKind::Hang) = fault {
            count(&self.inner.counts.failed, 1);
        }
        match fault {
            Some(ProxyFaultKind::Reset) => {
                let _closed_plainly_without = stream.set_zero_linger();
                return;
            }
            Some(ProxyFaultKind::Hang) => {
                std::future::pending::<()>().await;
            }
            _ => {}
        }
        let mut first = [0];
        let ended = match stream.peek(&mut first).await {
            Ok(1) if first == [SOCKS5] => socks::pass(&self.inner, stream, fault).await,
            Ok(1) => http::pass(&self.inner, stream, fault).await,
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection through a proxy ended early");
        }
    }
}

/// The port again; whoever has it for a moment may have to let go first.
async fn bound(address: SocketAddr, stop: &CancellationToken) -> io::Result<TcpListener> {
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && !stop.is_cancelled() => {
                tokio::time::sleep(AGAIN).await;
            }
            bound => return bound,
        }
    }
}
