//! The flags of a command that serves a world.

use jiff::Timestamp;

use crate::config::{Fixed, WorldConfig};
use crate::faults::{BadFaults, Faults};
use crate::world::World;

/// Flags for a world; flatten them into a command.
#[derive(Clone, Debug, clap::Args)]
pub struct WorldArgs {
    /// What everything is drawn from: the same seed gives the same world
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The share of the real volumes
    #[arg(long, default_value_t = 0.01)]
    scale: f64,
    /// When the world begins; nothing is published after that day [default: the clock's]
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// One month of one list with exactly this many pages, and nothing else
    #[arg(long, value_name = "N")]
    pages: Option<u64>,
    /// About how long each of those pages is
    #[arg(long, value_name = "BYTES", requires = "pages")]
    page_bytes: Option<u64>,
    /// A fault from the start: `too_many=0.01`, `latency.fixed_ms=20`, `in_flight={"limits":[8,2,6]}`
    #[arg(long = "fault", value_name = "NAME=VALUE")]
    faults: Vec<String>,
}

impl WorldArgs {
    /// The world that the flags describe, with its switches set.
    pub fn world(&self) -> Result<World, BadFaults> {
        let usual = Fixed::default();
        let fixed = self.pages.map(|pages| Fixed {
            pages,
            page_bytes: self.page_bytes.unwrap_or(usual.page_bytes),
            ..usual
        });
        let (seed, scale, now) = (self.seed, self.scale, self.now);
        let mut faults = Faults::default();
        self.faults.iter().try_for_each(|setting| faults.set(setting))?;
        let world = World::new(WorldConfig { seed, scale, now, fixed });
        world.set_faults(faults)?;
        Ok(world)
    }
}
