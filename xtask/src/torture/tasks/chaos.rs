//! What is done to the processes and servers.

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use super::fleet::Fleet;
use crate::output;
use crate::random::Random;
use crate::servers::{Postgres, RabbitMq, StopMode};

/// How often each was done.
#[derive(Debug, Default)]
pub(super) struct Toll {
    kills: u32,
    freezes: u32,
    postgres: u32,
    rabbitmq: u32,
}

impl fmt::Display for Toll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} processes killed, {} frozen; PostgreSQL ended {} times, RabbitMQ {} times",
            self.kills, self.freezes, self.postgres, self.rabbitmq
        )
    }
}

/// One blow. Most fall on the processes, a few on the servers.
pub(super) fn strike(
    random: &mut Random,
    fleet: &mut Fleet,
    postgres: &mut Postgres,
    rabbitmq: &mut RabbitMq,
    toll: &mut Toll,
) -> Result<()> {
    fleet.thaw();
    let place = random.below(fleet.len() as u64) as usize;
    match random.below(100) {
        0..55 => {
            fleet.kill(place)?;
            toll.kills += 1;
        }
        55..90 => {
            // Often past the lease (2.5 s), sometimes not.
            fleet.freeze(place, Duration::from_millis(random.between(200, 6000)));
            toll.freezes += 1;
        }
        90..95 => {
            end_postgres(random, postgres)?;
            toll.postgres += 1;
        }
        _ => {
            end_rabbitmq(random, rabbitmq)?;
            toll.rabbitmq += 1;
        }
    }
    Ok(())
}

/// It is away for a while.
pub(in crate::torture) fn end_postgres(random: &mut Random, postgres: &mut Postgres) -> Result<()> {
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
pub(in crate::torture) fn end_rabbitmq(random: &mut Random, rabbitmq: &mut RabbitMq) -> Result<()> {
    output::note("RabbitMQ ends");
    if random.below(2) == 0 {
        rabbitmq.stop()?;
    } else {
        rabbitmq.kill()?;
    }
    std::thread::sleep(Duration::from_millis(random.between(100, 2000)));
    rabbitmq.resume()
}
