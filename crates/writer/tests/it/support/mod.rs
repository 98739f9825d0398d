//! A writer on a database of its own, behind a real socket, and a place that serves sources.

mod line;
mod place;
mod serve;

pub(crate) use line::Line;
pub(crate) use place::{KEY, World, failed, from_url, inline, soon, things};
pub(crate) use serve::{Answer, Site};
