//! The wires between the orchestrator and the doubles: no socket, and time that is only told.

use std::time::Duration;

use async_trait::async_trait;
use lavra_fleet::api::{Answer, Call, Lost, Method, Transport};
use lavra_world::{Fate, FleetBody, FleetRequest, FleetWorld};
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Wires {
    pub(super) world: FleetWorld,
    pub(super) begun: Instant,
}

#[async_trait]
impl Transport for Wires {
    async fn send(&self, call: Call) -> Result<Answer, Lost> {
        let method = match call.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Delete => "DELETE",
        };
        let request = FleetRequest {
            idempotency_key: call.idempotency_key.as_deref(),
            body: call.body.as_ref().map_or(FleetBody::Nothing, FleetBody::Json),
            ..FleetRequest::new(method, &call.url)
        };
        let answer = self.world.answer(self.begun.elapsed(), &request);
        let late = answer.delay > call.timeout;
        tokio::time::sleep(answer.delay.min(call.timeout).max(Duration::from_millis(1))).await;
        match answer.fate {
            Fate::Delivered if late => Err(Lost::Timeout("no answer in time".into())),
            Fate::Delivered => Ok(Answer {
                status: answer.status,
                retry_after: answer.retry_after,
                body: answer.body,
            }),
            Fate::Refused => Err(Lost::Refused("connection refused".into())),
            Fate::Timeout => Err(Lost::Timeout("no answer in time".into())),
            Fate::Reset => Err(Lost::Broken("connection reset".into())),
        }
    }
}
