//! stub
use anyhow::Result;
use crate::workspace::Workspace;
pub(crate) fn run(_w: &Workspace) -> Result<()> { Ok(()) }
