//! The specification's error codes: what each means, whose fault it is and whether trying again may help.

use crate::words::words;

words!(
    /// A code of the specification.
    ErrorCode {
        Error100 = "ERROR100",
        Error101 = "ERROR101",
        Error102 = "ERROR102",
        Error103 = "ERROR103",
        Error104 = "ERROR104",
        Error200 = "ERROR200",
        Error201 = "ERROR201",
        Error202 = "ERROR202",
        Error203 = "ERROR203",
        Error300 = "ERROR300",
        Error301 = "ERROR301",
        Error302 = "ERROR302",
        Error303 = "ERROR303",
        Error304 = "ERROR304",
        Error400 = "ERROR400",
        Error401 = "ERROR401",
        Error500 = "ERROR500",
        Error501 = "ERROR501",
        Error502 = "ERROR502",
    }
);

words!(
    /// Who is at fault.
    Blame {
        Proxy = "proxy",
        Worker = "worker",
        Writer = "writer",
        Storage = "storage",
        Mission = "mission",
        Nobody = "nobody",
    }
);

words!(Phase {
    Session = "session",
    Scrape = "scrape",
    Writer = "writer",
});

impl ErrorCode {
    /// What happened, in a few words.
    pub fn says(self) -> &'static str {
        match self {
            Self::Error100 => "the session failed",
            Self::Error101 => "the session was not ready in time",
            Self::Error102 => "the session is stuck",
            Self::Error103 => "the session was disconnected",
            Self::Error104 => "no session after all retries",
            Self::Error200 => "the scrape job failed",
            Self::Error201 => "the scrape job was cancelled by someone else",
            Self::Error202 => "the scrape job took too long",
            Self::Error203 => "the scrape failed after all retries",
            Self::Error300 => "the writer failed",
            Self::Error301 => "the writer refused the connection",
            Self::Error302 => "the writer did not answer in time",
            Self::Error303 => "the writer cannot store this data as it is",
            Self::Error304 => "the writer failed after its retry",
            Self::Error400 => "the storage failed",
            Self::Error401 => "the storage refused the credentials",
            Self::Error500 => "the request was refused as wrong",
            Self::Error501 => "no proxy is free",
            Self::Error502 => "the worker cannot be reached",
        }
    }

    /// Whom it counts against, unless an answer says otherwise.
    pub fn blame(self) -> Blame {
        match self {
            Self::Error100 | Self::Error101 | Self::Error102 | Self::Error103 => Blame::Proxy,
            Self::Error104 | Self::Error501 => Blame::Nobody,
            Self::Error200 | Self::Error201 | Self::Error202 | Self::Error203 | Self::Error502 => {
                Blame::Worker
            }
            Self::Error300 | Self::Error301 | Self::Error302 | Self::Error304 => Blame::Writer,
            Self::Error303 | Self::Error500 => Blame::Mission,
            Self::Error400 | Self::Error401 => Blame::Storage,
        }
    }

    /// Whether a mission is tried again with this error while retries last.
    pub fn is_retried(self) -> bool {
        match self {
            Self::Error100
            | Self::Error101
            | Self::Error102
            | Self::Error103
            | Self::Error200
            | Self::Error201
            | Self::Error202
            | Self::Error300
            | Self::Error301
            | Self::Error302 => true,
            Self::Error104
            | Self::Error203
            | Self::Error303
            | Self::Error304
            | Self::Error400
            | Self::Error401
            | Self::Error500
            | Self::Error501
            | Self::Error502 => false,
        }
    }

    /// The phase whose retries it spends.
    pub fn phase(self) -> Phase {
        match self {
            Self::Error100
            | Self::Error101
            | Self::Error102
            | Self::Error103
            | Self::Error104
            | Self::Error501 => Phase::Session,
            Self::Error200
            | Self::Error201
            | Self::Error202
            | Self::Error203
            | Self::Error400
            | Self::Error401
            | Self::Error500
            | Self::Error502 => Phase::Scrape,
            Self::Error300 | Self::Error301 | Self::Error302 | Self::Error303 | Self::Error304 => {
                Phase::Writer
            }
        }
    }

    /// The code of a mission whose retries are used up.
    #[must_use]
    pub fn when_exhausted(self) -> Self {
        match self.phase() {
            Phase::Session => Self::Error104,
            Phase::Scrape => Self::Error203,
            Phase::Writer => Self::Error304,
        }
    }
}
