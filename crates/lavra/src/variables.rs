//! The variables of the environment that stand for no flag. Those that do are with their flags, and
//! those of the database are [`lavra_db::Environment`]'s.

#[derive(Clone, Copy, Debug)]
pub(crate) enum Variable {
    /// What the log shows.
    Log,
    /// The keys that seal secrets.
    SecretKey,
    /// The API key that commands send to `--server`.
    ApiKey,
    /// The API key of a worker or writer that is added, instead of stdin.
    FleetApiKey,
    /// The password of a proxy that is added, instead of stdin.
    FleetPassword,
    /// The key that callers of the writer must have.
    WriterApiKey,
    /// What callers of a worker send as `x-api-key`.
    WorkerApiKey,
}

impl Variable {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Log => "LAVRA_LOG",
            Self::SecretKey => "LAVRA_SECRET_KEY",
            Self::ApiKey => "LAVRA_API_KEY",
            Self::FleetApiKey => "LAVRA_FLEET_API_KEY",
            Self::FleetPassword => "LAVRA_FLEET_PASSWORD",
            Self::WriterApiKey => "LAVRA_WRITER_API_KEY",
            Self::WorkerApiKey => "LAVRA_WORKER_API_KEY",
        }
    }

    pub(crate) fn read(self) -> Option<String> {
        std::env::var(self.name()).ok()
    }
}
