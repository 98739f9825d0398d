//! A table as its catalog has it. Every name that gets into a statement comes from here.

use std::collections::{BTreeSet, HashMap};

use crate::order::{Destination, Operation};

/// Columns that say when a row was last written, where elements do not say it themselves.
const TOUCHED: [&str; 2] = ["last_seen_at", "updated_at"];

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is so or not, by itself")]
pub(crate) struct Column {
    pub(crate) name: String,
    /// As it stands in a statement.
    pub(crate) quoted: String,
    /// Its type, as it stands in a statement.
    pub(crate) kind: String,
    pub(crate) is_json: bool,
    pub(crate) is_list: bool,
    pub(crate) is_required: bool,
    /// Its default is the time.
    pub(crate) is_now: bool,
    /// As it stands in a statement, where it is known.
    pub(crate) default: Option<String>,
    pub(crate) sameness: Sameness,
}

/// What can be said, without the database, of two texts that stand for one value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sameness {
    /// They are the same text.
    Text,
    /// They are the same number.
    Integer,
    Uuid,
    Date,
    Unknown,
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Schema and name, as they stand in a statement.
    pub(crate) quoted: String,
    /// Those that can be written.
    pub(crate) columns: Vec<Column>,
    /// Of the columns, those of the key by which a row is there already; none for an insert.
    pub(crate) key: Vec<usize>,
    /// The column that takes the whole element.
    pub(crate) whole: Option<usize>,
    /// Whether rows can be copied into it, past its rules and policies.
    pub(crate) takes_copies: bool,
    /// Whether rows of different keys may still be in each other's way, so that the order in which they are
    /// written decides which of them fails.
    pub(crate) has_other_keys: bool,
    pub(crate) demands: Demands,
    by_name: HashMap<String, usize>,
}

/// What a table asks of rows beyond their types, where the engine is asked which of them it would refuse.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demands {
    /// Keys that no two rows may share.
    pub(crate) unique: Vec<Vec<usize>>,
    pub(crate) checks: Vec<Check>,
}

/// A condition, as it stands in a statement, and the columns in it.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) condition: String,
    pub(crate) columns: Vec<usize>,
}

impl Demands {
    /// Those that any of them is about.
    pub(crate) fn columns(&self) -> BTreeSet<usize> {
        let of_checks = self.checks.iter().map(|check| &check.columns);
        self.unique.iter().chain(of_checks).flatten().copied().collect()
    }
}

/// Which columns an element fills.
pub(crate) type Signature = Vec<usize>;

impl Table {
    /// For rows of this operation; `None` where a column of the key is not among the columns.
    pub(crate) fn new(
        quoted: String,
        columns: Vec<Column>,
        destination: &Destination,
    ) -> Option<Self> {
        let named = places(&columns, &destination.conflict_key)?;
        let key = match destination.operation {
            Operation::Upsert => named,
            Operation::Insert => Vec::new(),
        };
        let whole = columns.iter().position(|column| column.name == "data" && column.is_json);
        let named = columns.iter().enumerate().filter(|(place, _)| Some(*place) != whole);
        let by_name = named.map(|(place, column)| (column.name.clone(), place)).collect();
        let (takes_copies, has_other_keys, demands) = (false, false, Demands::default());
        Some(Self { quoted, columns, key, whole, takes_copies, has_other_keys, demands, by_name })
    }

    /// What can be said of the values of a row's key, each.
    pub(crate) fn of_key(&self) -> Vec<Sameness> {
        self.key.iter().map(|at| self.columns[*at].sameness).collect()
    }

    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn is_whole(&self, name: &str) -> bool {
        self.whole.is_some_and(|whole| self.columns[whole].name == name)
    }

    /// The columns of an element, with the one that takes all of it.
    pub(crate) fn filled<'a>(
        &'a self,
        signature: &'a Signature,
    ) -> impl Iterator<Item = &'a Column> {
        signature.iter().chain(&self.whole).map(|place| &self.columns[*place])
    }

    /// Whether elements that fill these columns are copied: each is a new row, and JSON stands for itself.
    pub(crate) fn is_copied(&self, signature: &Signature) -> bool {
        let has_lists = self.filled(signature).any(|column| column.is_list);
        self.takes_copies && self.key.is_empty() && !has_lists
    }

    /// `ON CONFLICT …` for elements that fill these columns; nothing for an insert.
    pub(crate) fn on_conflict(&self, signature: &Signature, now: &str) -> String {
        if self.key.is_empty() {
            return String::new();
        }
        let key: Vec<&str> = self.key.iter().map(|at| self.columns[*at].quoted.as_str()).collect();
        let of_key = |column: &&Column| !key.contains(&column.quoted.as_str());
        let mut set: Vec<String> = self
            .filled(signature)
            .filter(of_key)
            .map(|column| format!("{0} = excluded.{0}", column.quoted))
            .collect();
        if !set.is_empty() {
            let touched = self.columns.iter().enumerate().filter(|(place, column)| {
                column.is_now
                    && TOUCHED.contains(&column.name.as_str())
                    && !signature.contains(place)
            });
            set.extend(touched.map(|(_, column)| format!("{} = {now}", column.quoted)));
        }
        let then = if set.is_empty() {
            "NOTHING".to_owned()
        } else {
            format!("UPDATE SET {}", set.join(", "))
        };
        format!(" ON CONFLICT ({}) DO {then}", key.join(", "))
    }
}

/// Where columns of these names are, if all of them are there.
pub(crate) fn places(columns: &[Column], names: &[String]) -> Option<Vec<usize>> {
    names.iter().map(|name| columns.iter().position(|column| column.name == *name)).collect()
}

/// A name in double quotes.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
