//! What a caller may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The roles that keys have. Viewer, operator and admin include each other in this order; a writer
/// does a worker's part and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(example = "operator")]
pub enum Role {
    /// Sees how everything stands.
    Viewer,
    /// Runs it: tasks, missions, extractions, the fleet's run.
    Operator,
    /// Also changes what it runs with: workers, proxies, writers, settings, keys.
    Admin,
    /// Claims tasks and reports on them, as a worker in another language does.
    Writer,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Admin, Self::Writer];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Writer => "writer",
        }
    }

    /// Whether one with this role may do what needs at least `least`.
    pub fn includes(self, least: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Operator => matches!(least, Self::Operator | Self::Viewer),
            Self::Viewer => least == Self::Viewer,
            Self::Writer => least == Self::Writer,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is no role: viewer, operator, admin or writer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_includes_those_below_it_and_the_writer_stands_apart() {
        use Role::{Admin, Operator, Viewer, Writer};
        for (role, includes) in [
            (Viewer, &[Viewer][..]),
            (Operator, &[Viewer, Operator]),
            (Admin, &[Viewer, Operator, Admin, Writer]),
            (Writer, &[Writer]),
        ] {
            let found = Role::ALL.into_iter().filter(|least| role.includes(*least));
            assert_eq!(found.collect::<Vec<_>>(), includes, "{role}");
        }
    }

    #[test]
    fn a_role_is_read_as_it_is_written() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert!("Admin".parse::<Role>().is_err());
    }
}
