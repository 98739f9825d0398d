//! The three kinds of things, and how to find one.

use lavra_fleet::store::Thing;
use lavra_fleet::{Error, Fleet};

use crate::ui::page::Section;
use crate::ui::texts::Things;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Worker,
    Proxy,
    Writer,
}

impl Kind {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Worker => "/ui/workers",
            Self::Proxy => "/ui/proxies",
            Self::Writer => "/ui/writers",
        }
    }

    pub(super) fn section(self) -> Section {
        match self {
            Self::Worker => Section::Workers,
            Self::Proxy => Section::Proxies,
            Self::Writer => Section::Writers,
        }
    }

    pub(super) fn add(self, t: &Things) -> &'static str {
        match self {
            Self::Worker => t.add_worker,
            Self::Proxy => t.add_proxy,
            Self::Writer => t.add_writer,
        }
    }

    pub(super) fn edit(self, t: &Things) -> &'static str {
        match self {
            Self::Worker => t.edit_worker,
            Self::Proxy => t.edit_proxy,
            Self::Writer => t.edit_writer,
        }
    }

    /// The one with an id, and what people call it.
    pub(super) async fn find(self, fleet: &Fleet, id: &str) -> Result<(Thing, String), Error> {
        let store = &fleet.store;
        let (what, found) = match self {
            Self::Worker => {
                let found = store.workers().await?.into_iter().find(|it| it.id.0 == id);
                ("worker", found.map(|it| (Thing::Worker(it.id), it.name)))
            }
            Self::Proxy => {
                let found = store.proxies().await?.into_iter().find(|it| it.id.0 == id);
                ("proxy", found.map(|it| (Thing::Proxy(it.id.clone()), it.label().to_owned())))
            }
            Self::Writer => {
                let found = store.writers().await?.into_iter().find(|it| it.id.0 == id);
                ("writer", found.map(|it| (Thing::Writer(it.id), it.name)))
            }
        };
        found.ok_or_else(|| Error::NotFound { what, id: id.to_owned() })
    }
}
