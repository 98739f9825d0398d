//! What is done to missions that were chosen: into the queue, canceled, tried again.
//!
//! What cannot be undone, and what is done to all that match, is asked for twice: by the script's
//! dialog, or, without a script, by a page that shows how many are meant.

use axum::extract::State;
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::model::MissionId;
use lavra_fleet::store::Filter;
use serde::Deserialize;

use super::list::Query;
use crate::access::Form;
use crate::problem::Problem;
use crate::ui::confirm::ConfirmPage;
use crate::ui::page::{Section, Shell, back_to, local, show};
use crate::ui::texts::Missions;
use crate::ui::visitor::Visitor;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Queue,
    Cancel,
    Retry,
    RetryScrape,
}

impl Verb {
    fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::RetryScrape => "retry_scrape",
        }
    }

    fn wish(self) -> Wish {
        match self {
            Self::Queue => Wish::Queue,
            Self::Cancel => Wish::Cancel,
            Self::Retry => Wish::Retry { from_scrape: false },
            Self::RetryScrape => Wish::Retry { from_scrape: true },
        }
    }

    fn says(self, m: &'static Missions) -> &'static str {
        match self {
            Self::Queue => m.confirm_queue,
            Self::Cancel => m.confirm_cancel,
            Self::Retry | Self::RetryScrape => m.confirm_retry,
        }
    }

    fn done(self, m: &'static Missions) -> &'static str {
        match self {
            Self::Queue => m.done_queued,
            Self::Cancel => m.done_canceled,
            Self::Retry | Self::RetryScrape => m.done_retried,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(rename = "do")]
    verb: Verb,
    #[serde(default)]
    id: Vec<String>,
    /// All that match, whether they were shown or not.
    matching: Option<String>,
    confirmed: Option<String>,
    /// Where to go afterwards.
    back: Option<String>,
    state: Option<String>,
    q: Option<String>,
    media: Option<String>,
    language: Option<String>,
    worker: Option<String>,
    error: Option<String>,
    from: Option<String>,
    to: Option<String>,
    waiting: Option<String>,
}

impl Choice {
    /// What the list had been narrowed to.
    fn query(&self) -> Result<Query, Problem> {
        let fields = [
            ("state", &self.state),
            ("q", &self.q),
            ("media", &self.media),
            ("language", &self.language),
            ("worker", &self.worker),
            ("error", &self.error),
            ("from", &self.from),
            ("to", &self.to),
            ("waiting", &self.waiting),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let filled = fields.filter(|(_, value)| !value.is_empty());
        let mut text = form_urlencoded::Serializer::new(String::new());
        let text = text.extend_pairs(filled).finish();
        serde_html_form::from_str(&text).map_err(|error| Problem::invalid(error.to_string()))
    }
}

pub(super) async fn act(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Form(choice): Form<Choice>,
) -> Result<Response, Problem> {
    let m = Missions::of(visitor.language);
    let query = choice.query()?;
    let list = format!("/ui/missions?{}", query.text());
    let back = choice.back.as_deref().and_then(local).unwrap_or(&list).to_owned();
    let is_matching = choice.matching.is_some();
    if choice.id.is_empty() && !is_matching {
        return Ok(back_to(&back, m.choose_something));
    }
    let ids = choice.id.iter().cloned().map(MissionId).collect();
    let filter = if is_matching { query.filter() } else { Filter { ids, ..Filter::default() } };
    let must_ask = is_matching || choice.verb == Verb::Cancel;
    if must_ask && choice.confirmed.is_none() {
        let count = fleet.store.count(&filter).await?;
        let shell = Shell::new(visitor, Section::Missions, m.missions);
        let mut fields = query.fields();
        fields.push(("do".into(), choice.verb.as_str().into()));
        fields.push(("confirmed".into(), "yes".into()));
        fields.push(("back".into(), back.clone()));
        if is_matching {
            fields.push(("matching".into(), "yes".into()));
        } else {
            fields.extend(choice.id.into_iter().map(|id| ("id".into(), id)));
        }
        let page = ConfirmPage {
            says: choice.verb.says(m).into(),
            count: shell.f.number(count),
            how_many: if count == 1 { m.how_many_mission } else { m.how_many_missions },
            action: "/ui/missions/act".into(),
            fields,
            back,
            shell,
        };
        return Ok(show(&page));
    }
    let granted = fleet.wish(&filter, choice.verb.wish(), "user").await?;
    let mut said = format!("{} {}", granted.done.len(), choice.verb.done(m));
    if let Some((id, why)) = granted.refused.first() {
        let refused = granted.refused.len();
        said = format!("{said}; {refused} {}: {id} {why}", m.done_refused);
    }
    Ok(back_to(&back, &said))
}
