//! What is done to a worker, a proxy or a writer: tested, activated, deactivated, removed.

use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::service::Changes;
use lavra_fleet::store::Thing;
use serde::Deserialize;

use super::kind::Kind;
use crate::access::Form;
use crate::problem::{Code, Problem};
use crate::ui::confirm::ConfirmPage;
use crate::ui::page::{Shell, back_to, local, show};
use crate::ui::texts::Things;
use crate::ui::visitor::Visitor;

/// A page is answered before its own time is over.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Test,
    Activate,
    Deactivate,
    Remove,
}

#[derive(Debug, Deserialize)]
pub(super) struct Wish {
    #[serde(rename = "do")]
    verb: Verb,
    confirmed: Option<String>,
    /// Where to go afterwards.
    back: Option<String>,
}

pub(super) async fn act(
    State(fleet): State<Fleet>,
    Extension(kind): Extension<Kind>,
    Path(id): Path<String>,
    visitor: Visitor,
    Form(wish): Form<Wish>,
) -> Result<Response, Problem> {
    let t = Things::of(visitor.language);
    let (thing, name) = kind.find(&fleet, &id).await?;
    let back = wish.back.as_deref().and_then(local).unwrap_or(kind.path()).to_owned();
    let done = match wish.verb {
        Verb::Test => return Ok(back_to(&back, &test(&fleet, &thing, &name, t).await?)),
        Verb::Activate => set_active(&fleet, &thing, true).await.map(|()| t.did_activate),
        Verb::Deactivate => set_active(&fleet, &thing, false).await.map(|()| t.did_deactivate),
        Verb::Remove if wish.confirmed.is_none() => {
            return Ok(confirm(visitor, kind, &thing, name, back));
        }
        Verb::Remove => fleet.remove(&thing).await.map_err(Problem::from).map(|()| t.did_remove),
    };
    match done {
        Ok(done) if wish.verb == Verb::Remove => {
            Ok(back_to(kind.path(), &format!("{done} {name}")))
        }
        Ok(done) => Ok(back_to(&back, &format!("{done} {name}"))),
        // What stands in the way is said where the person is.
        Err(problem) if problem.code() == Code::FleetConflict => {
            Ok(back_to(&back, &format!("{name}: {}", problem.detail())))
        }
        Err(problem) => Err(problem),
    }
}

async fn set_active(fleet: &Fleet, thing: &Thing, active: bool) -> Result<(), Problem> {
    let changes = Changes { active: Some(active), ..Changes::default() };
    Ok(fleet.change(thing, changes).await?)
}

/// Asks it, and says what it answered.
async fn test(fleet: &Fleet, thing: &Thing, name: &str, t: &Things) -> Result<String, Problem> {
    let Ok(tested) = tokio::time::timeout(PATIENCE, fleet.test(thing)).await else {
        fleet.store.tested(thing, false).await?;
        return Ok(format!("{name}: {}", t.no_answer_in_time));
    };
    let tested = tested?;
    let how = if tested.ok { t.did_answer } else { t.did_not_answer };
    Ok(format!("{name} {how}: {}", tested.said))
}

fn confirm(visitor: Visitor, kind: Kind, thing: &Thing, name: String, back: String) -> Response {
    let t = Things::of(visitor.language);
    let shell = Shell::new(visitor, kind.section(), name.clone());
    show(&ConfirmPage {
        says: t.confirm_remove.into(),
        count: name,
        how_many: "",
        action: format!("{}/{}/act", kind.path(), thing.id()),
        fields: [("do", "remove"), ("confirmed", "yes")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        back,
        shell,
    })
}
