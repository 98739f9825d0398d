//! The fleet's words, described as what they are: one of a few.

use lavra_fleet::{bank, code, model, settings};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Declares a word as it travels, for each of the fleet's own.
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident = $model:ty;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub(crate) $model);

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                one_of(<$model>::WORDS).into()
            }
        }

        impl ToSchema for $name {}

        impl From<$model> for $name {
            fn from(word: $model) -> Self {
                Self(word)
            }
        }

        impl From<$name> for $model {
            fn from(word: $name) -> Self {
                word.0
            }
        }
    )*};
}

fn one_of(words: &'static [&'static str]) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied())).build()
}

words! {
    MissionStatus = model::MissionStatus;
    /// How far a mission is.
    Checkpoint = model::Checkpoint;
    MediaType = model::MediaType;
    WorkerStatus = model::WorkerStatus;
    /// What happened.
    EventKind = model::EventKind;
    /// Why a session ends.
    CloseReason = model::CloseReason;
    /// What something waits for.
    Waiting = model::Waiting;
    /// What the orchestrators are to do.
    Mode = model::Mode;
    /// What went wrong; `/docs/errors` explains each.
    MissionErrorCode = code::ErrorCode;
    /// How a range of days is cut.
    Every = bank::Every;
    /// Which failures of a proxy count towards its deactivation.
    ProxyFailures = settings::ProxyFailures;
}
