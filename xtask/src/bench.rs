//! stub
use anyhow::Result;
use crate::workspace::Workspace;
pub(crate) fn run(_w: &Workspace, _n: Option<&str>) -> Result<()> { Ok(()) }
