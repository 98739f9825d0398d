mod receiver;
mod running;
mod world;

pub(crate) use lavra_testkit::{on_each_engine, on_servers};
pub(crate) use receiver::{Answer, Receiver};
pub(crate) use running::Running;
pub(crate) use world::{SECRET, World, migrations};
