//! `lavra mission`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use jiff::civil::Date;
use lavra_fleet::bank::Every;
use lavra_fleet::model::{Checkpoint, MediaType, MissionStatus};

use super::value::day;

#[derive(Debug, Subcommand)]
pub(crate) enum Mission {
    /// Add missions to the bank: days × media types × languages, without what is there already.
    Add(MissionAdd),
    /// Make missions from a CSV file: date_start,date_end,media_type,languages.
    Import {
        /// The CSV file.
        file: PathBuf,
        /// Put them into the queue at once.
        #[arg(long)]
        queue: bool,
    },
    /// List missions, newest first.
    List(MissionList),
    /// Show one mission.
    Show {
        /// The id of the mission.
        id: String,
    },
    /// The timeline of a mission.
    Log {
        /// The id of the mission.
        id: String,
    },
    /// Make a new mission like one that there was.
    Copy {
        /// The id of the mission.
        id: String,
        /// Put it into the queue at once.
        #[arg(long)]
        queue: bool,
    },
    /// Put missions of the bank into the queue.
    Queue(MissionChoice),
    /// Cancel missions; jobs that run are told to stop.
    Cancel(MissionChoice),
    /// Try failed missions again: only the write, where the data is there.
    Retry {
        #[command(flatten)]
        choice: MissionChoice,
        /// Where to begin [default: write, where the data is there].
        #[arg(long, value_name = "PHASE")]
        again_from: Option<Phase>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Phase {
    /// Only what was not stored
    Write,
    /// All of it
    Scrape,
}

#[derive(Debug, Args)]
pub(crate) struct MissionAdd {
    /// The first day: 2025-01-31.
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(crate) from: Date,
    /// The last day.
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(crate) to: Date,
    /// What a mission covers of the range; range is all of it.
    #[arg(long, value_name = "SPAN", default_value = "day")]
    #[arg(value_parser = PossibleValuesParser::new(Every::WORDS))]
    pub(crate) every: String,
    /// A media type; may be repeated, for a mission each.
    #[arg(long = "media-type", value_name = "TYPE", default_value = "all")]
    #[arg(value_parser = PossibleValuesParser::new(MediaType::WORDS))]
    pub(crate) media_types: Vec<String>,
    /// A language; may be repeated, for a mission each. `pt,en` is one mission with both.
    #[arg(long = "language", value_name = "CODE", required = true)]
    pub(crate) languages: Vec<String>,
    /// Put them into the queue at once.
    #[arg(long)]
    pub(crate) queue: bool,
}

/// Which missions; all conditions together.
#[derive(Debug, Default, Args)]
pub(crate) struct MissionFilter {
    /// Only with this status.
    #[arg(long, value_parser = PossibleValuesParser::new(MissionStatus::WORDS))]
    pub(crate) status: Option<String>,
    /// Only those of the bank: never queued.
    #[arg(long)]
    pub(crate) bank: bool,
    /// Only at this checkpoint.
    #[arg(long, value_parser = PossibleValuesParser::new(Checkpoint::WORDS))]
    pub(crate) checkpoint: Option<String>,
    /// Only with this error, such as ERROR203.
    #[arg(long, value_name = "CODE")]
    pub(crate) error_code: Option<String>,
    /// Only of this media type.
    #[arg(long, value_name = "TYPE", value_parser = PossibleValuesParser::new(MediaType::WORDS))]
    pub(crate) media_type: Option<String>,
    /// Only of this language.
    #[arg(long, value_name = "CODE")]
    pub(crate) language: Option<String>,
    /// Only those of the worker with this id.
    #[arg(long, value_name = "ID")]
    pub(crate) worker: Option<String>,
    /// Only days at or after this one.
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(crate) from: Option<Date>,
    /// Only days up to this one.
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(crate) to: Option<Date>,
}

/// Which missions are to change: some by their ids, or all that meet the conditions.
#[derive(Debug, Args)]
pub(crate) struct MissionChoice {
    /// Ids of missions.
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: MissionFilter,
    /// All missions; needed where nothing else is said.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MissionList {
    #[command(flatten)]
    pub(crate) filter: MissionFilter,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) limit: u16,
    /// Go on where the last page ended, with what it said.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}
