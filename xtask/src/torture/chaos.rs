//! What is done to the processes and servers: chance, but nobody is spared.

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use super::processes::{Processes, Suffered};
use crate::random::Random;
use crate::servers::{Postgres, RabbitMq, StopMode};
use crate::{interrupt, output};

/// One in so many blows is one that is still owed to somebody.
const OWED_EVERY: u64 = 3;

pub(super) struct Chaos {
    random: Random,
    /// An end for each, so that no run leaves one out by chance.
    owed: Vec<Blow>,
    postgres: u32,
    rabbitmq: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Blow {
    Kill(usize),
    Freeze(usize, Duration),
    Postgres,
    RabbitMq,
}

impl Chaos {
    pub(super) fn new(seed: u64, processes: usize) -> Self {
        let mut random = Random::new(seed);
        let mut owed: Vec<Blow> = (0..processes).map(Blow::Kill).collect();
        owed.extend([Blow::Postgres, Blow::RabbitMq]);
        for last in (1..owed.len()).rev() {
            owed.swap(last, random.below(last as u64 + 1) as usize);
        }
        Self { random, owed, postgres: 0, rabbitmq: 0 }
    }

    /// One blow. Most fall on the processes, a few on the servers.
    pub(super) fn strike(
        &mut self,
        processes: &mut Processes,
        postgres: &mut Postgres,
        rabbitmq: &mut RabbitMq,
    ) -> Result<()> {
        processes.thaw();
        // What ended by itself, because a server was away when it began, is begun again.
        processes.restart()?;
        match self.next(processes.len()) {
            Blow::Kill(place) => processes.kill(place)?,
            Blow::Freeze(place, length) => processes.freeze(place, length),
            Blow::Postgres => {
                self.postgres += 1;
                end_postgres(&mut self.random, postgres)?;
            }
            Blow::RabbitMq => {
                self.rabbitmq += 1;
                end_rabbitmq(&mut self.random, rabbitmq)?;
            }
        }
        Ok(())
    }

    fn next(&mut self, processes: usize) -> Blow {
        let random = &mut self.random;
        if random.below(OWED_EVERY) == 0
            && let Some(blow) = self.owed.pop()
        {
            return blow;
        }
        let place = random.below(processes as u64) as usize;
        match random.below(100) {
            0..60 => Blow::Kill(place),
            // Often past the lease (2.5 s), sometimes not.
            60..91 => Blow::Freeze(place, Duration::from_millis(random.between(200, 6000))),
            91..96 => Blow::Postgres,
            _ => Blow::RabbitMq,
        }
    }

    /// A while without any, within these milliseconds.
    pub(super) fn pause(&mut self, low: u64, high: u64) -> Result<()> {
        interrupt::sleep(Duration::from_millis(self.random.between(low, high)))
    }

    pub(super) fn toll(&self, processes: &Processes) -> Toll {
        Toll {
            processes: processes.suffered(),
            servers: [("PostgreSQL", self.postgres), ("RabbitMQ", self.rabbitmq)],
        }
    }
}

/// Who was killed and frozen how often.
#[derive(Debug)]
pub(super) struct Toll {
    pub(super) processes: Vec<Suffered>,
    pub(super) servers: [(&'static str, u32); 2],
}

impl Toll {
    /// Those that were never ended.
    pub(super) fn spared(&self) -> impl Iterator<Item = &str> {
        let processes = self.processes.iter().map(|one| (one.name.as_str(), one.kills));
        processes.chain(self.servers).filter(|(_, ends)| *ends == 0).map(|(name, _)| name)
    }
}

impl fmt::Display for Toll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12}{:>7}{:>7}", "part", "killed", "frozen")?;
        for Suffered { name, kills, freezes } in &self.processes {
            write!(f, "\n{name:<12}{kills:>7}{freezes:>7}")?;
        }
        self.servers.iter().try_for_each(|(name, ends)| write!(f, "\n{name:<12}{ends:>7}"))
    }
}

/// It is away for a while.
fn end_postgres(random: &mut Random, postgres: &mut Postgres) -> Result<()> {
    output::note("PostgreSQL ends");
    match random.below(3) {
        0 => postgres.stop(StopMode::Fast)?,
        1 => postgres.stop(StopMode::Immediate)?,
        _ => postgres.kill()?,
    }
    std::thread::sleep(Duration::from_millis(random.between(100, 3000)));
    postgres.resume()
}

/// The same.
fn end_rabbitmq(random: &mut Random, rabbitmq: &mut RabbitMq) -> Result<()> {
    output::note("RabbitMQ ends");
    if random.below(2) == 0 {
        rabbitmq.stop()?;
    } else {
        rabbitmq.kill()?;
    }
    std::thread::sleep(Duration::from_millis(random.between(100, 2000)));
    rabbitmq.resume()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_spared_whatever_the_seed() {
        for seed in 0..200 {
            let mut chaos = Chaos::new(seed, 9);
            let blows: Vec<Blow> = (0..120).map(|_| chaos.next(9)).collect();
            assert!(chaos.owed.is_empty(), "{seed}");
            let all = (0..9).map(Blow::Kill).chain([Blow::Postgres, Blow::RabbitMq]);
            all.for_each(|blow| assert!(blows.contains(&blow), "{seed}: {blow:?}"));
        }
    }

    #[test]
    fn whoever_was_never_ended_was_spared() {
        let suffered = |name: &str, kills| Suffered { name: name.into(), kills, freezes: 9 };
        let toll = Toll {
            processes: vec![suffered("world", 1), suffered("writer-1", 0)],
            servers: [("PostgreSQL", 2), ("RabbitMQ", 0)],
        };
        assert_eq!(toll.spared().collect::<Vec<_>>(), ["writer-1", "RabbitMQ"]);
    }
}
