//! `lavra extract`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Extract {
    /// Extract months of a source: `lavra extract run pncp --from 2024-01 --to 2024-03`.
    Run(ExtractRun),
    /// How the months of a source stand, as a table of endpoints and months.
    Status(ExtractStatus),
    /// Check what is stored: every page there, as it came, with the records that were promised.
    Audit(ExtractAudit),
    /// Take up what is not complete, also what has failed, without planning anything new.
    Retry(ExtractRetry),
    /// Write records as files, one per endpoint and month: Parquet, CSV or JSON lines.
    Export(ExtractExport),
    /// Read a source file and explain its mistakes, line by line.
    Check {
        /// The TOML file of the source.
        file: PathBuf,
    },
}

/// Which source is meant.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// A source that is built in (pncp) [default: the one of --source].
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    pub(crate) name: Option<String>,
    /// A source file of your own.
    #[arg(long, value_name = "FILE")]
    pub(crate) source: Option<PathBuf>,
}

/// Which part of what is in the table.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// The first month: 2024-01, or any day of it [default: the first that is there].
    #[arg(long, value_name = "MONTH")]
    pub(crate) from: Option<String>,
    /// The last month [default: the last that is there].
    #[arg(long, value_name = "MONTH")]
    pub(crate) to: Option<String>,
    /// Only this endpoint, with or without the value of its fan-out; may be repeated
    /// [default: all].
    #[arg(long = "endpoint", value_name = "NAME")]
    pub(crate) endpoints: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractRun {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The first month: 2024-01, or any day of it.
    #[arg(long, value_name = "MONTH")]
    pub(crate) from: String,
    /// The last month.
    #[arg(long, value_name = "MONTH")]
    pub(crate) to: String,
    /// Only this endpoint, with or without the value of its fan-out; may be repeated
    /// [default: all usual ones].
    #[arg(long = "endpoint", value_name = "NAME")]
    pub(crate) endpoints: Vec<String>,
    /// Where the API is, instead of where the source says.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Fetch complete months again.
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Print the plan and what it would cost, and ask for nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractStatus {
    /// The name of the source: pncp, or one of your own.
    pub(crate) name: String,
    /// The first month: 2024-01 [default: the first that is there].
    #[arg(long, value_name = "MONTH")]
    pub(crate) from: Option<String>,
    /// The last month [default: the last that is there].
    #[arg(long, value_name = "MONTH")]
    pub(crate) to: Option<String>,
    /// Only this endpoint, with or without the value of its fan-out.
    #[arg(long, value_name = "NAME")]
    pub(crate) endpoint: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractAudit {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Ask the source for the totals anew, and say which have moved.
    #[arg(long)]
    pub(crate) against_source: bool,
    /// Where the API is, instead of where the source says.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Mark what is damaged, so that the next run fetches it again.
    #[arg(long)]
    pub(crate) repair: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractRetry {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Where the API is, instead of where the source says.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractExport {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// A directory, or s3://bucket/below (with the usual `AWS_*` variables).
    #[arg(long, value_name = "PLACE")]
    pub(crate) out: String,
    /// What the files are.
    #[arg(long, value_enum, default_value_t = ExportFormat::Parquet)]
    pub(crate) format: ExportFormat,
    /// Also what is there of months that are not complete.
    #[arg(long)]
    pub(crate) partial: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Compressed with zstd; columns have their types.
    Parquet,
    /// With a header row.
    Csv,
    /// The records as they came, one in a line.
    Jsonl,
}
