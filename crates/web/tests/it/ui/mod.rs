//! Mission Control's pages, as a browser without a script has them. What a script adds is tested in a real
//! browser: `crates/web/browser`.

mod audit;
mod dead_letters;
mod extractions;
mod fleet;
mod help;
mod missions;
mod odd;
mod overview;
mod schedules;
mod settings;
mod store;
mod tasks;
