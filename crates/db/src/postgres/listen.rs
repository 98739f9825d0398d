//! LISTEN on a connection of its own, which comes back by itself and knows whether it works.
//!
//! Behind a pooler in transaction mode LISTEN is accepted and nothing ever arrives. So each new
//! connection is sent a notification first, over another one (its own it would hear, still within
//! the transaction, even there); only when that arrived is the listener *live*, and those who
//! wait may poll less often.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;

use super::Pg;
use super::connect::{CONNECT_LIMIT, Dial, reason};

const PING: &str = "lavra-ping:";
const PING_LIMIT: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_secs(1);
const RETRY_BEHIND_A_POOLER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Listener {
    payloads: mpsc::Receiver<String>,
    live: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Listener {
    pub(super) fn start(pg: Pg, channel: String) -> Self {
        let (sender, payloads) = mpsc::channel(256);
        let live = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&live);
        let task = tokio::spawn(async move {
            while !sender.is_closed() {
                let wait = match hear(&pg, &channel, &sender, &flag).await {
                    Heard::Nothing => RETRY_BEHIND_A_POOLER,
                    Heard::UntilCut => RETRY,
                };
                flag.store(false, Ordering::Relaxed);
                tokio::time::sleep(wait).await;
            }
        });
        Self { payloads, live, task: task.abort_handle() }
    }

    /// Whether notifications are known to arrive now.
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    /// The next payload. Waits for ever while the server is away.
    pub async fn next(&mut self) -> Option<String> {
        self.payloads.recv().await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

enum Heard {
    /// LISTEN was accepted, but the notification did not arrive.
    Nothing,
    UntilCut,
}

async fn hear(pg: &Pg, channel: &str, sender: &mpsc::Sender<String>, live: &AtomicBool) -> Heard {
    let subscribed = subscribe(&pg.dial, channel);
    let (client, mut messages) = match tokio::time::timeout(CONNECT_LIMIT, subscribed).await {
        Ok(Ok(connected)) => connected,
        Ok(Err(error)) => {
            tracing::debug!(reason = %reason(&error), "cannot listen for notifications");
            return Heard::UntilCut;
        }
        Err(_) => return Heard::UntilCut,
    };
    let ping = format!("{PING}{}", Uuid::new_v4());
    let params = [(&channel as _, Type::TEXT), (&ping as _, Type::TEXT)];
    let asked = pg.query("try notifications", "SELECT pg_notify($1, $2)", &params).await;
    if asked.is_err() {
        return Heard::UntilCut;
    }
    match tokio::time::timeout(PING_LIMIT, messages.arrived(&ping)).await {
        Ok(true) => {
            live.store(true, Ordering::Relaxed);
            pg.sessions.store(true, Ordering::Relaxed);
        }
        Ok(false) => return Heard::UntilCut,
        Err(_) => {
            pg.sessions.store(false, Ordering::Relaxed);
            let stop = client.batch_execute("UNLISTEN *");
            let _best_effort = tokio::time::timeout(PING_LIMIT, stop).await;
            return Heard::Nothing;
        }
    }
    // Whoever waited may have missed something while nobody listened.
    if sender.send(String::new()).await.is_err() {
        return Heard::UntilCut;
    }
    while let Some(payload) = messages.payloads.recv().await {
        if !payload.starts_with(PING) && sender.send(payload).await.is_err() {
            break;
        }
    }
    Heard::UntilCut
}

async fn subscribe(
    dial: &Dial,
    channel: &str,
) -> Result<(Client, Messages), tokio_postgres::Error> {
    let (client, mut connection) = dial.config.connect(dial.tls.clone()).await?;
    let (heard, payloads) = mpsc::channel(256);
    let pump = tokio::spawn(async move {
        let mut next = pin!(poll_fn(move |cx| connection.poll_message(cx)));
        while let Some(Ok(message)) = next.as_mut().await {
            if let AsyncMessage::Notification(note) = message
                && heard.send(note.payload().to_owned()).await.is_err()
            {
                break;
            }
        }
    });
    let messages = Messages { payloads, pump: pump.abort_handle() };
    client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
    Ok((client, messages))
}

/// What a connection hears; the connection ends with it.
struct Messages {
    payloads: mpsc::Receiver<String>,
    pump: AbortHandle,
}

impl Messages {
    /// Whether `ping` came, before the connection was cut.
    async fn arrived(&mut self, ping: &str) -> bool {
        while let Some(payload) = self.payloads.recv().await {
            if payload == ping {
                return true;
            }
        }
        false
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.pump.abort();
    }
}
