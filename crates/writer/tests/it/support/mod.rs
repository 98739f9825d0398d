//! A writer on a database of its own, behind a real socket, and a place that serves sources.

mod line;
mod place;
mod serve;

pub(crate) use line::Line;
pub(crate) use place::{KEY, World, failed, from_file, from_url, inline, soon, things, with_files};
pub(crate) use serve::{Answer, Site};
