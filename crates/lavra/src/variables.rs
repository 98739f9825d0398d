//! The variables of the environment that stand for no flag. Those that do are with their flags, and
//! those of the database are [`lavra_db::Environment`]'s.

#[derive(Clone, Copy, Debug)]
pub(crate) enum Variable {
    /// What the log shows.
    Log,
    /// The keys that seal secrets.
    SecretKey,
}

impl Variable {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Log => "LAVRA_LOG",
            Self::SecretKey => "LAVRA_SECRET_KEY",
        }
    }

    pub(crate) fn read(self) -> Option<String> {
        std::env::var(self.name()).ok()
    }
}
