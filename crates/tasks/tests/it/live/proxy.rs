//! A TCP proxy on loopback that can be told to misbehave.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// Refuses new connections and cuts those that stand.
    down: watch::Sender<bool>,
    /// Cuts a connection in the place of passing on the server's next answer.
    swallow: Arc<AtomicBool>,
    swallowed: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (down, _) = watch::channel(false);
        let proxy = Self {
            address,
            down,
            swallow: Arc::default(),
            swallowed: Arc::default(),
            refused: Arc::default(),
        };
        let this = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *this.down.borrow() {
                    this.refused.fetch_add(1, Ordering::SeqCst);
                } else {
                    tokio::spawn(this.clone().carry(client, server));
                }
            }
        });
        proxy
    }

    pub(crate) fn down(&self, is_down: bool) {
        self.down.send_replace(is_down);
    }

    pub(crate) fn swallow_next_answer(&self) {
        self.swallow.store(true, Ordering::SeqCst);
    }

    pub(crate) fn swallowed(&self) -> usize {
        self.swallowed.load(Ordering::SeqCst)
    }

    /// How many connections were refused while it was down.
    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    async fn carry(self, mut client: TcpStream, server: SocketAddr) {
        let Ok(mut upstream) = TcpStream::connect(server).await else { return };
        let mut down = self.down.subscribe();
        let (mut there, mut back) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        // Only answers to what was asked after the order count.
        let mut asked = false;
        loop {
            tokio::select! {
                read = client.read(&mut there) => match read {
                    Ok(count) if count > 0 => {
                        asked = self.swallow.load(Ordering::SeqCst);
                        if upstream.write_all(&there[..count]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
                read = upstream.read(&mut back) => match read {
                    Ok(count) if count > 0 => {
                        if asked && self.swallow.swap(false, Ordering::SeqCst) {
                            self.swallowed.fetch_add(1, Ordering::SeqCst);
                            return;
                        }
                        if client.write_all(&back[..count]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
                () = cut(&mut down) => return,
            }
        }
    }
}

async fn cut(down: &mut watch::Receiver<bool>) {
    let _proxy_gone = down.wait_for(|is_down| *is_down).await;
}
