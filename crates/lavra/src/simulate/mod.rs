//! `lavra simulate`: the real orchestrator under virtual time, against a fleet that is made from a
//! seed, with tables in memory. A day of it takes seconds, and a seed that fails fails again.

mod chaos;
mod report;
mod transport;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use lavra_fleet::keys::NoKeys;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::memory::{Freezer, Memory};
use lavra_fleet::model::{MediaType, MissionId, MissionStatus, WorkerStatus};
use lavra_fleet::settings::Timing;
use lavra_fleet::store::{Filter, NewMission, NewProxy, NewWorker, NewWriter, Things, Wishes};
use lavra_fleet::{Bell, Orchestrator};
use lavra_tasks::model::ProcessId;
use lavra_world::{FleetConfig, FleetFaults, FleetWorld};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) use self::report::Report;
use self::transport::Wires;

/// What is simulated.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) missions: usize,
    pub(crate) proxies: usize,
    pub(crate) writers: usize,
    pub(crate) orchestrators: usize,
    pub(crate) faults: FleetFaults,
    /// Whether orchestrators are killed and frozen, and people cancel and retry.
    pub(crate) chaos: bool,
    /// False only to see that the simulation finds what the guards prevent.
    pub(crate) is_guarded: bool,
    /// After so much virtual time it has gone on for too long.
    pub(crate) at_most: Duration,
}

/// When all simulations begin: the day of the specification's example.
fn beginning() -> Timestamp {
    Timestamp::from_second(1_736_937_000).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Runs a scenario to its end in a runtime of its own.
pub(crate) fn run(scenario: &Scenario) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("no runtime")?;
    runtime.block_on(simulate(scenario))
}

async fn simulate(scenario: &Scenario) -> anyhow::Result<Report> {
    let mut dice = SmallRng::seed_from_u64(scenario.seed);
    let config = FleetConfig {
        workers: scenario.workers,
        writers: scenario.writers,
        worker_key: None,
        writer_key: None,
        ..FleetConfig::default()
    };
    let world = FleetWorld::new(config, scenario.seed);
    world.set_faults(scenario.faults.clone()).context("the faults")?;
    let memory = Memory::new(beginning());
    furnish(&memory, &world, scenario).await?;
    memory.check_steps();
    if !scenario.is_guarded {
        memory.break_the_guard();
    }
    let begun = Instant::now();
    let stage = chaos::Stage {
        memory: memory.clone(),
        wires: Arc::new(Wires { world: world.clone(), begun }),
        bell: Bell::default(),
        seed: scenario.seed,
        tried_again: Mutex::default(),
    };
    let runner = stage.orchestrator(0, None);
    let stop = CancellationToken::new();
    let ended = {
        let run = async {
            let ended = runner.run(None, &stop, |_, _| {}).await;
            until_idle(&memory).await;
            ended
        };
        let chaos = chaos::play(&stage, scenario, &mut dice);
        tokio::select! {
            biased;
            ended = run => ended.context("the run")?,
            never = chaos => match never {},
            () = tokio::time::sleep(scenario.at_most) => {
                let tables = memory.tables();
                let stuck: Vec<String> = tables
                    .missions
                    .values()
                    .filter(|mission| !mission.status.is_over() && mission.queued_at.is_some())
                    .take(5)
                    .map(|m| format!("{} {} {:?} waits for {:?}", m.id, m.status, m.checkpoint, m.waiting))
                    .collect();
                bail!("seed {}: not over after {:?}: {}", scenario.seed, scenario.at_most, stuck.join("; "));
            }
        }
    };
    let mut report = Report::of(&memory, &world, begun.elapsed(), &ended);
    let tried_again = stage.tried_again.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.wrong = verdict(&memory, &world, &tried_again, begun.elapsed());
    Ok(report)
}

/// A run that ends leaves what is still open to those who supervise; whoever of them is frozen has
/// this long to wake and see to it.
async fn until_idle(memory: &Memory) {
    let until = Instant::now() + Duration::from_secs(15 * 60);
    let is_idle = || memory.tables().workers.values().all(|w| w.status == WorkerStatus::Idle);
    while !is_idle() && Instant::now() < until {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Workers, proxies, a writer, and a bank that is all in the queue.
async fn furnish(memory: &Memory, world: &FleetWorld, scenario: &Scenario) -> anyhow::Result<()> {
    for number in 0..scenario.workers {
        let url = world.worker_url(number);
        let worker = NewWorker {
            id: format!("w{number:04}").as_str().into(),
            name: format!("worker-{number}"),
            storage_domain: Some(url.clone()),
            url,
            api_key: String::new(),
            active: true,
        };
        memory.add_worker(worker).await?;
    }
    for number in 0..scenario.proxies {
        let proxy = NewProxy {
            id: format!("p{number:04}").as_str().into(),
            name: format!("proxy-{number}"),
            host: format!("proxy-{number}.test"),
            port: Some(8080),
            username: None,
            password: None,
            active: true,
        };
        memory.add_proxy(proxy).await?;
    }
    for number in 0..scenario.writers {
        let writer = NewWriter {
            id: format!("r{number}").as_str().into(),
            name: format!("writer-{number}"),
            url: world.writer_url(number),
            api_key: String::new(),
            active: true,
        };
        memory.add_writer(writer).await?;
    }
    let first = jiff::civil::date(2025, 1, 1);
    let missions = (0..scenario.missions).map(|number| {
        let day = first.saturating_add(jiff::Span::new().days((number / 6) as i64 % 3000));
        let media = [MediaType::All, MediaType::Video, MediaType::Image];
        NewMission {
            id: MissionId(format!("m{number:06}")),
            date_start: day,
            date_end: day,
            media_type: media[number % 3],
            languages: vec![if number % 2 == 0 { "pt" } else { "en" }.into()],
        }
    });
    memory.add_missions(missions.collect(), true).await?;
    memory.wish(&Filter::default(), Wish::Queue, "user").await?;
    Ok(())
}

/// What must hold when all is over.
fn verdict(
    memory: &Memory,
    world: &FleetWorld,
    tried_again: &BTreeSet<MissionId>,
    at: Duration,
) -> Vec<String> {
    let tables = memory.tables();
    let mut wrong = tables.wrong.clone();
    wrong.extend(world.violations());
    for mission in tables.missions.values() {
        // A person may try one again just when the run has ended.
        let waits = mission.status == MissionStatus::Queued && tried_again.contains(&mission.id);
        if !mission.status.is_over() && !waits {
            wrong.push(format!("mission {} is {}", mission.id, mission.status));
        }
        if mission.token.is_some() || mission.held_by.is_some() {
            wrong.push(format!("mission {} is over and still held", mission.id));
        }
    }
    for worker in tables.workers.values() {
        if worker.status != WorkerStatus::Idle || worker.current_mission_id.is_some() {
            wrong.push(format!("worker {} is {}", worker.id, worker.status));
        }
    }
    for proxy in tables.proxies.values().filter(|proxy| proxy.in_use_by_worker_id.is_some()) {
        wrong.push(format!("proxy {} is still in use", proxy.id));
    }
    let stats = world.stats(at);
    let unclosed = tables.workers.values().filter(|worker| worker.unclosed).count() as u64;
    if stats.sessions_open > unclosed {
        let open = stats.sessions_open;
        wrong.push(format!("{open} sessions are open, {unclosed} are known to be"));
    }
    let truth: BTreeMap<String, u64> =
        world.jobs(at).into_iter().map(|job| (job.job_id, job.true_count)).collect();
    for mission in tables.missions.values() {
        if mission.status != MissionStatus::Completed {
            continue;
        }
        let Some(url) = &mission.worker_data_url else {
            if mission.ads_count != Some(0) {
                wrong.push(format!("mission {} is completed without data", mission.id));
            }
            continue;
        };
        let written = stats.writes.get(url).map_or(0, |write| write.written);
        if written == 0 || written > 1 && !tried_again.contains(&mission.id) {
            wrong.push(format!("the data of mission {} was written {written} times", mission.id));
        }
        let job = mission.worker_job_id.as_ref().and_then(|id| truth.get(id)).copied();
        if job != mission.ads_count.map(|count| count as u64) {
            wrong.push(format!("mission {}: {:?} ads, not {job:?}", mission.id, mission.ads_count));
        }
    }
    wrong
}

impl chaos::Stage {
    /// The orchestrator of process `number`; a later life of it is another process.
    fn orchestrator(&self, number: u64, freezer: Option<Freezer>) -> Orchestrator {
        let store = match freezer {
            Some(freezer) => self.memory.through(freezer),
            None => self.memory.clone(),
        };
        let process = ProcessId(Uuid::from_u128(u128::from(number) + 1));
        let seed = self.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Orchestrator::new(
            Arc::new(store),
            Arc::clone(&self.wires) as _,
            Arc::new(NoKeys),
            self.bell.clone(),
            Timing::default(),
            process,
            seed,
        )
    }
}

/// A share of a duration.
fn some(dice: &mut SmallRng, least: u64, most: u64) -> Duration {
    Duration::from_secs(dice.random_range(least..=most))
}

/// Seconds since the beginning, as people read them.
fn clock_time(at: Timestamp) -> String {
    let since = at.duration_since(beginning()).max(SignedDuration::ZERO);
    let seconds = since.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
