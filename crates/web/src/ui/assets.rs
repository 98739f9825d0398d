//! Style, script and icon: within the program, at addresses that change with their content, so a
//! browser may keep them for ever.

use std::sync::LazyLock;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use lavra_db::hex;
use sha2::{Digest, Sha256};

use crate::app::Site;

const STYLE: &str = include_str!("../../assets/style.css");
const SCRIPT: &str = include_str!("../../assets/script.js");
const ICON: &str = include_str!("../../assets/icon.svg");

static STYLE_PATH: LazyLock<String> = LazyLock::new(|| path("style", STYLE, "css"));
static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| path("script", SCRIPT, "js"));
static ICON_PATH: LazyLock<String> = LazyLock::new(|| path("icon", ICON, "svg"));

fn path(name: &str, content: &str, ending: &str) -> String {
    let digest = hex(&Sha256::digest(content.as_bytes())[..6]);
    format!("/assets/{name}.{digest}.{ending}")
}

pub(crate) fn style_path() -> &'static str {
    &STYLE_PATH
}

pub(crate) fn script_path() -> &'static str {
    &SCRIPT_PATH
}

pub(crate) fn icon_path() -> &'static str {
    &ICON_PATH
}

pub(crate) fn routes() -> Router<Site> {
    let serve = |kind: &'static str, content: &'static str| {
        get(async move || ([(header::CONTENT_TYPE, kind)], content))
    };
    Router::new()
        .route(style_path(), serve("text/css; charset=utf-8", STYLE))
        .route(script_path(), serve("text/javascript; charset=utf-8", SCRIPT))
        .route(icon_path(), serve("image/svg+xml", ICON))
}
