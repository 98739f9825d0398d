//! What the source answered for one page, as text that does nothing.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_extract::model::ExtractionId;

use super::extracted;
use crate::app::App;
use crate::path::Ids;
use crate::problem::{Code, Problem};
use crate::ui::json::{self, Shown};
use crate::ui::page::{Section, Shell, show as answer};
use crate::ui::texts::Extractions as Words;
use crate::ui::visitor::Visitor;

const MOST: usize = 256 * 1024;

#[derive(Template)]
#[template(path = "body.html")]
struct BodyPage {
    shell: Shell,
    t: &'static Words,
    source: String,
    id: String,
    page: i64,
    facts: Vec<(&'static str, String)>,
    hashes: [(&'static str, String); 2],
    body: Option<Shown>,
    /// The pages beside it that are stored.
    before: Option<i64>,
    after: Option<i64>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Ids([source, id, page]): Ids<3>,
    visitor: Visitor,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let store = extracted(&app, &source).await?;
    let none = || {
        let detail = format!("{id} of {source} has no page {page:?} here");
        Problem::new(Code::ExtractionNotFound, detail)
    };
    let number: i64 = page.parse::<i32>().map_err(|_| none())?.into();
    let id_of = ExtractionId(id.clone());
    let mut around = store.pages_named(&id_of, vec![number - 1, number]).await?;
    let found = around.pop().filter(|page| page.stored.page == number).ok_or_else(none)?;
    let (opening, after) = tokio::try_join!(
        store.opening(&id_of, found.response, MOST),
        store.pages_after(&id_of, number, 1),
    )?;
    let before = around.first().map(|page| page.stored.page);
    let after = after.first().map(|page| page.stored.page);
    let shell = Shell::new(visitor, Section::Extractions, format!("{id} · {} {number}", t.page));
    let body = opening.map(|text| {
        let shown = json::lay_out(&text, MOST);
        // What was read may be all that fits, and not all there is.
        let is_cut = shown.is_cut || found.bytes > MOST as i64;
        Shown { is_cut, ..shown }
    });
    let f = &shell.f;
    let facts = vec![
        (t.records, f.number(found.stored.records)),
        (t.size, f.bytes(found.bytes)),
        (t.fetched_at, f.time(found.fetched_at)),
        (t.generation, found.stored.generation.to_string()),
    ];
    let hashes = [(t.hash, found.content_hash), (t.body_hash, found.body_hash)];
    let page = number;
    let page = BodyPage { shell, t, source, id, page, facts, hashes, body, before, after };
    Ok(answer(&page))
}
