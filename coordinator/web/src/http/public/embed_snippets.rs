//! The page with instructions for embedding a status page in other sites.

use std::sync::Arc;

use ::http::header::CONTENT_SECURITY_POLICY;
use ::http::{HeaderValue, Method};
use futures_util::FutureExt;

use super::authorize_or_login;
use crate::http::HttpContext;
use crate::http::document_response::document;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::{DocumentKind, HTML, run_blocking};
use crate::views::embed_snippets::EmbedSnippetsPage;
use crate::views::render;

/// The page's own policy, plus the embedded frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// The route.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    let route = public_route(|context, call| show(context, call).boxed());
    vec![("/p/{slug}/badges", vec![(Method::GET, route)])]
}

/// `GET /p/{slug}/badges`
async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_or_login(&context, &call)?;
    let (service, admitted) = (context.service.clone(), page.clone());
    let render_snippets = move || async move {
        let overview = service.public_pages.public_overview(&admitted).await?;
        let names_by_id = overview.monitors.into_iter().map(|monitor| (monitor.monitor.id, monitor.monitor.name));
        let (monitors, now) = (names_by_id.collect::<Vec<_>>(), service.now());
        let address = service.pages.url(admitted.page());
        let at = move || {
            render(&EmbedSnippetsPage::new((admitted.page(), admitted.path_prefix()), &address, &monitors, now))
        };
        run_blocking(at).await
    };
    let rendered =
        context.page_cache.get_or_render(&page, DocumentKind::Other("badges.html"), HTML, render_snippets).await?;
    Ok(document(&page, &rendered, &call.headers).with(CONTENT_SECURITY_POLICY, POLICY))
}
