//! One page, asked for until it is there, or will not be.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use lavra_db::hex;
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::Run;
use crate::breaker::Change;
use crate::digest::Digest;
use crate::error::Result;
use crate::event::Event;
use crate::host::Ended;
use crate::model::{Extraction, Window};
use crate::plan::today;
use crate::reading::{Failure, Kind, Reading, Reply, Trouble, is_in_doubt, read};
use crate::request::{Request, request};
use crate::source::Series;
use crate::store::{Arrival, Done, Outcome, Written};

/// A wait that people would wonder about.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// What is kept of a body that is not data.
const KEPT_AS_TEXT: usize = 64 << 10;

pub(super) enum Asked {
    /// With the total that it announces.
    Page {
        arrival: Box<Arrival>,
        total: i64,
    },
    PastEnd,
    /// Trying again may help, and has not so far.
    GaveUp(Failure),
    Refused(Failure),
    /// Somebody else has the task now, or may have.
    Lost,
    Stopped,
}

impl Run {
    /// Asks for page `page` of a window at most `attempts` times.
    pub(super) async fn ask(
        &self,
        task: &Extraction,
        window: &Window,
        page: i64,
        attempts: u32,
    ) -> Result<Asked> {
        let Some(series) = self.source().series(&task.endpoint_name) else {
            return Ok(Asked::Refused(unknown(&task.endpoint_name)));
        };
        let request =
            request(self.source(), &series, window, page, today(self.source(), self.now()))?;
        let mut failed = 0;
        let mut said: HashMap<u16, u32> = HashMap::new();
        loop {
            let endpoint = series.endpoint;
            let away = self.extractor.host.away_for(&endpoint.name);
            if let Some(away) = away.filter(|away| *away > self.patience(&endpoint.name)) {
                let is_senseless = self.extractor.host.is_senseless(&endpoint.name);
                return Ok(Asked::GaveUp(gone(away, is_senseless)));
            }
            let mut permit = tokio::select! {
                biased;
                () = self.extractor.stop.cancelled() => return Ok(Asked::Stopped),
                permit = self.extractor.host.permit(&endpoint.name, endpoint.in_flight) => permit,
            };
            // What fails again and again may be this page, and not the endpoint.
            if permit.is_probe()
                && let Some(least) = self.least(&series, window, page)?
            {
                self.probe(permit, &series, &least).await;
                continue;
            }
            // Whoever has the task by now may have this page.
            if !self.holds(task.token) {
                return Ok(Asked::Lost);
            }
            self.tally.request();
            let begun = Instant::now();
            let answer = self.extractor.client.fetch(&request.url).await;
            let elapsed = begun.elapsed();
            permit.land();
            let earlier = match &answer {
                Ok(reply) => said.entry(reply.status).or_default(),
                Err(_) => &mut 0,
            };
            let reading = read(&answer, self.source(), endpoint, page, *earlier, self.now());
            *earlier += 1;
            let change = permit.end(Ended::of(&reading));
            self.tell_of_outage(change, &endpoint.name, &reading);
            if let Reading::Retry(Failure { wait: Some(wait), .. }) = &reading {
                self.tell_of_wait(*wait);
            }
            let asked_for =
                Page { task, series: &series, window, request: &request, number: page, elapsed };
            let failure = match reading {
                Reading::Data(digest) => return Ok(self.page(&asked_for, answer, digest)),
                Reading::Empty => {
                    let nothing = answer.map(in_text);
                    return Ok(self.page(&asked_for, nothing, Digest::default()));
                }
                Reading::PastEnd => return Ok(Asked::PastEnd),
                // Page 1 was not refused: what is refused now is the server's mood.
                Reading::Refused(failure) if page > 1 && failure.kind == Kind::Refused => failure,
                Reading::Refused(failure) => {
                    self.keep_failure(&asked_for, answer, &failure).await;
                    return Ok(Asked::Refused(failure));
                }
                Reading::Retry(failure) => failure,
            };
            // One answer more may decide it, however few attempts there are.
            let is_in_doubt =
                page == 1 && is_in_doubt(&answer, self.source(), endpoint, page, self.now());
            if self.keep_failure(&asked_for, answer, &failure).await == Some(Written::Lost) {
                self.lose(task.token);
                return Ok(Asked::Lost);
            }
            // An outage is nobody's fault.
            if self.extractor.host.away_for(&endpoint.name).is_none() {
                failed += 1;
            }
            if failed >= attempts && !is_in_doubt {
                return Ok(Asked::GaveUp(failure));
            }
            tokio::select! {
                () = tokio::time::sleep(self.backoff(failed)) => {}
                () = self.extractor.stop.cancelled() => return Ok(Asked::Stopped),
            }
        }
    }

    /// The wait after so many failures: doubled each time, and never the same for all.
    pub(super) fn backoff(&self, failed: u32) -> Duration {
        let settings = &self.extractor.settings;
        let doublings = 2_u32.saturating_pow(failed.saturating_sub(1));
        let full = settings.backoff.saturating_mul(doublings);
        let mut luck = self.luck.lock().unwrap_or_else(PoisonError::into_inner);
        full.min(settings.longest_backoff).mul_f64(luck.random_range(0.5..1.0))
    }

    /// The host wants to be left alone; of answers that came together one is told of.
    fn tell_of_wait(&self, wait: Duration) {
        let until = self.now() + wait;
        let mut told = self.alone_until.lock().unwrap_or_else(PoisonError::into_inner);
        if wait >= WORTH_A_WORD && told.is_none_or(|told| until > told + WORTH_A_WORD) {
            *told = Some(until);
            self.tell(Event::LeftAlone { until });
        }
    }

    pub(super) fn tell_of_outage(&self, change: Change, endpoint: &str, reading: &Reading) {
        let endpoint = endpoint.to_owned();
        match (change, reading) {
            (Change::Opened, Reading::Retry(failure)) => {
                self.tell(Event::OutageBegan { endpoint, error: failure.error.clone() });
            }
            (Change::Closed, _) => self.tell(Event::OutageEnded { endpoint }),
            (Change::Opened | Change::None, _) => {}
        }
    }

    fn page(&self, page: &Page<'_>, answer: Result<Reply, Trouble>, digest: Digest) -> Asked {
        let reply = answer.unwrap_or_default();
        let (records, total) = (digest.records.unwrap_or(0), digest.total.unwrap_or(0));
        // Numbers that no total of ours can be, as far as the tables have room for them.
        let most = i64::from(i32::MAX);
        let total_records = total.min(most);
        let done = Done {
            records,
            total_records,
            generation: page.task.generation,
            body_hash: hex(&Sha256::digest(&reply.body)),
            content_hash: format!("{:032x}", digest.content),
        };
        let mut arrival = self.arrival(page, reply, Outcome::Done(done));
        arrival.total_records = Some(total_records);
        arrival.total_pages = digest.pages.map(|pages| pages.clamp(0, most));
        Asked::Page { arrival: Box::new(arrival), total }
    }

    /// A failure is a row too; `None` when it could not be stored, which is no reason to stop.
    async fn keep_failure(
        &self,
        page: &Page<'_>,
        answer: Result<Reply, Trouble>,
        failure: &Failure,
    ) -> Option<Written> {
        self.tell(Event::PageFailed {
            task: page.task.task_id.clone(),
            page: page.window.base + page.number,
            kind: failure.kind,
            error: failure.error.clone(),
        });
        let outcome = Outcome::Failed { error: failure.error.clone() };
        let arrival = self.arrival(page, in_text(answer.unwrap_or_default()), outcome);
        self.sink.put(&page.task.task_id, page.task.token, arrival).await.ok()
    }

    fn arrival(&self, page: &Page<'_>, reply: Reply, outcome: Outcome) -> Arrival {
        let headers: serde_json::Map<String, serde_json::Value> =
            reply.headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        let query: serde_json::Map<String, serde_json::Value> =
            page.request.query.iter().map(|(n, v)| (n.clone(), v.clone().into())).collect();
        let mut url = page.request.url.clone();
        url.set_query(None);
        Arrival {
            id: self.store().clock().new_id(),
            at: self.now(),
            url: url.into(),
            endpoint_name: page.task.endpoint_name.clone(),
            data_date: page.task.data_date,
            run: self.extractor.run.clone(),
            parameters: serde_json::Value::Object(query).to_string(),
            code: reply.status,
            headers: serde_json::Value::Object(headers).to_string(),
            body: (!reply.body.is_empty()).then_some(reply.body),
            current_page: page.number,
            page: page.window.base + page.number,
            page_size: page.series.endpoint.page_size,
            total_records: None,
            total_pages: None,
            elapsed: page.elapsed,
            outcome,
        }
    }
}

/// A page that was asked for.
struct Page<'a> {
    task: &'a Extraction,
    series: &'a Series<'a>,
    window: &'a Window,
    request: &'a Request,
    number: i64,
    elapsed: Duration,
}

/// What is not data is kept as text, whatever it was, and not more of it than people read.
fn in_text(reply: Reply) -> Reply {
    let start = &reply.body[..reply.body.len().min(KEPT_AS_TEXT)];
    let text = String::from_utf8_lossy(start).replace('\0', "\u{FFFD}");
    Reply { body: text.into(), ..reply }
}

fn unknown(endpoint: &str) -> Failure {
    let error = format!("the source has no endpoint {endpoint} any more");
    Failure { kind: Kind::Refused, error, wait: None }
}

fn gone(away: Duration, is_senseless: bool) -> Failure {
    let minutes = away.as_secs() / 60;
    let error = if is_senseless {
        format!(
            "what answers there has not been this source for {minutes} minutes: is the address right?"
        )
    } else {
        format!("the source has been away for {minutes} minutes")
    };
    Failure { kind: Kind::Connection, error, wait: None }
}
