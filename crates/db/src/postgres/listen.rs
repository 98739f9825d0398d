//! LISTEN on a connection of its own, which comes back by itself and knows whether it works.
//!
//! Behind a pooler in transaction mode LISTEN is accepted and nothing ever arrives. So each new
//! connection sends itself a notification first; only when that came back is the listener *live*,
//! and those who wait may poll less often.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;

use super::connect::{Dial, reason};

const PING: &str = "ping";
const PING_LIMIT: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_secs(2);
const RETRY_BEHIND_A_POOLER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Listener {
    payloads: mpsc::Receiver<String>,
    live: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Listener {
    pub(super) fn start(dial: Arc<Dial>, channel: String) -> Self {
        let (sender, payloads) = mpsc::channel(256);
        let live = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&live);
        let task = tokio::spawn(async move {
            while !sender.is_closed() {
                let wait = match hear(&dial, &channel, &sender, &flag).await {
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
    /// LISTEN was accepted, but our own notification did not come back.
    Nothing,
    UntilCut,
}

async fn hear(
    dial: &Dial,
    channel: &str,
    sender: &mpsc::Sender<String>,
    live: &AtomicBool,
) -> Heard {
    let (client, mut connection) = match dial.config.connect(dial.tls.clone()).await {
        Ok(pair) => pair,
        Err(error) => {
            tracing::debug!(reason = %reason(&error), "cannot listen for notifications");
            return Heard::UntilCut;
        }
    };
    let (heard, mut messages) = mpsc::channel(256);
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
    let _pump = AbortOnDrop(pump.abort_handle());
    let subscribe = format!("LISTEN \"{channel}\"; NOTIFY \"{channel}\", '{PING}'");
    if client.batch_execute(&subscribe).await.is_err() {
        return Heard::UntilCut;
    }
    match tokio::time::timeout(PING_LIMIT, messages.recv()).await {
        Ok(Some(_)) => live.store(true, Ordering::Relaxed),
        Ok(None) => return Heard::UntilCut,
        Err(_) => return Heard::Nothing,
    }
    // Whoever waited may have missed something while nobody listened.
    if sender.send(String::new()).await.is_err() {
        return Heard::UntilCut;
    }
    while let Some(payload) = messages.recv().await {
        if payload != PING && sender.send(payload).await.is_err() {
            break;
        }
    }
    Heard::UntilCut
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
