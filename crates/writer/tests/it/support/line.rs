//! A line to the server that can be cut, of which the server hears nothing until it looks.

use std::net::SocketAddr;

use lavra_testkit::Server;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

pub(crate) struct Line {
    pub(crate) address: SocketAddr,
    cut: tokio::sync::watch::Sender<CancellationToken>,
}

impl Line {
    pub(crate) async fn to_the_server() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, now) = tokio::sync::watch::channel(CancellationToken::new());
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let end = now.borrow().clone();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(Server::address()).await.unwrap();
                    tokio::select! {
                        () = end.cancelled() => {}
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => return,
                    }
                    drop(near);
                    // The server is not told.
                    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
                    drop(far);
                });
            }
        });
        Self { address, cut }
    }

    /// Cuts what is connected; who connects afterwards gets through.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(CancellationToken::new()).cancel();
    }
}
