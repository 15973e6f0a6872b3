//! Embeds of a page in other sites: a frame, and a script that shows a notice. Nothing else may be framed.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use ::http::header::CONTENT_SECURITY_POLICY;
use ::http::{HeaderName, HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::board::Range;
use parallax_core::page::look::{Language, Theme};
use parallax_core::refusal::Refusals;

use super::enter;
use super::served::{document, for_long, shared};
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::route::{Answer, Call, Route, open};
use crate::publish::{Document, HTML, Paper, off_the_runtime};
use crate::views::embed::{self, Embed};
use crate::views::print;

/// The page's own policy, except that any site may frame it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors *",
);
/// Cache lifetime of the script.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=3600, stale-while-revalidate=86400");

/// The routes.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    const GET: Method = Method::GET;
    vec![
        ("/p/{slug}/embed", vec![(GET, open(|context, call| frame(context, call).boxed()))]),
        ("/p/{slug}/widget.js", vec![(GET, open(|context, call| widget(context, call).boxed()))]),
    ]
}

/// `GET /p/{slug}/embed`
async fn frame(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let mut wanted = url::form_urlencoded::parse(call.query.as_bytes()).filter(|(key, _)| key == "theme");
    let theme = match wanted.next().as_ref().map(|(_, value)| value.as_ref()) {
        None | Some("auto") => Theme::Auto,
        Some("light") => Theme::Light,
        Some("dark") => Theme::Dark,
        Some(_) => return Err(Refusals::one("theme", "must be light, dark or auto").into()),
    };
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let board = service.board(&admitted, Some(Range::Quarter)).await?;
        let address = service.page_url(admitted.page());
        off_the_runtime(move || print(&Embed::new(&board, admitted.root(), &address, theme))).await
    };
    let drawn = context.boards.kept(&page, Paper::Embed(theme.name()), HTML, draw).await?;
    // In a sandboxed frame, the page's own script is cross-origin.
    Ok(shared(&page, document(&page, &drawn, &call.headers)).with(CONTENT_SECURITY_POLICY, POLICY))
}

/// `GET /p/{slug}/widget.js`
async fn widget(context: Arc<Context>, call: Call<()>) -> Answer {
    static PRESSED: LazyLock<BTreeMap<Language, Document>> = LazyLock::new(|| {
        let press = |script: String| Document::press("text/javascript; charset=utf-8", script.as_bytes());
        Language::ALL.into_iter().map(|language| (language, press(embed::widget(language)))).collect()
    });
    let page = enter(&context, &call)?;
    let pressed = PRESSED.get(&page.page().language).ok_or(Refused::Route)?;
    let reply = for_long(&page, document(&page, pressed, &call.headers), FRESH);
    // Allows the script on pages with a cross-origin embedder policy.
    let shared = HeaderName::from_static("cross-origin-resource-policy");
    Ok(reply.with(shared, HeaderValue::from_static("cross-origin")))
}
