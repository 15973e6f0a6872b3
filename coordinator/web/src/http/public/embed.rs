//! Embeds of a page in other sites: a frame, and a script that shows a notice. Nothing else may be framed.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use ::http::header::CONTENT_SECURITY_POLICY;
use ::http::{HeaderName, HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::page::branding::{Language, Theme};
use parallax_core::page_view::TimeRange;
use parallax_core::validation::ValidationErrors;

use super::authorize;
use crate::http::HttpContext;
use crate::http::document_response::{allow_cross_origin, document, with_cache_lifetime};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::{CompressedDocument, DocumentKind, HTML, run_blocking};
use crate::views::embed::{self, EmbedPage};
use crate::views::render;

/// The page's own policy, except that any site may frame it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors *",
);
/// Cache lifetime of the script.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=3600, stale-while-revalidate=86400");

/// The routes.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    vec![
        ("/p/{slug}/embed", vec![(GET, public_route(|context, call| frame(context, call).boxed()))]),
        ("/p/{slug}/widget.js", vec![(GET, public_route(|context, call| widget(context, call).boxed()))]),
    ]
}

/// `GET /p/{slug}/embed`
async fn frame(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let mut themes = url::form_urlencoded::parse(call.query.as_bytes()).filter(|(key, _)| key == "theme");
    let theme = match themes.next().as_ref().map(|(_, value)| value.as_ref()) {
        None | Some("auto") => Theme::Auto,
        Some("light") => Theme::Light,
        Some("dark") => Theme::Dark,
        Some(_) => return Err(ValidationErrors::single("theme", "must be light, dark or auto").into()),
    };
    let (service, authorized) = (context.service.clone(), page.clone());
    let render_page = move || async move {
        let page_view = service.public_pages.view(&authorized, Some(TimeRange::Quarter)).await?;
        let address = service.pages.url(authorized.page());
        run_blocking(move || render(&EmbedPage::new(&page_view, authorized.path_prefix(), &address, theme))).await
    };
    let rendered =
        context.page_cache.get_or_render(&page, DocumentKind::Embed(theme.name()), HTML, render_page).await?;
    // In a sandboxed frame, the page's own script is cross-origin.
    Ok(allow_cross_origin(&page, document(&page, &rendered, &call.headers)).with(CONTENT_SECURITY_POLICY, POLICY))
}

/// `GET /p/{slug}/widget.js`
async fn widget(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    static SCRIPTS: LazyLock<BTreeMap<Language, CompressedDocument>> = LazyLock::new(|| {
        let compress =
            |script: String| CompressedDocument::compress("text/javascript; charset=utf-8", script.as_bytes());
        Language::ALL.into_iter().map(|language| (language, compress(embed::widget_script(language)))).collect()
    });
    let page = authorize(&context, &call)?;
    let script = SCRIPTS.get(&page.page().language).ok_or(ApiError::NoRoute)?;
    let reply = with_cache_lifetime(&page, document(&page, script, &call.headers), FRESH);
    // Allows the script on pages with a cross-origin embedder policy.
    let shared = HeaderName::from_static("cross-origin-resource-policy");
    Ok(reply.with(shared, HeaderValue::from_static("cross-origin")))
}
