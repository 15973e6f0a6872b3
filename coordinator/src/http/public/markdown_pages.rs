//! Pages as Markdown, by the path's extension or by content negotiation.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::header::{ACCEPT, VARY};
use ::http::{HeaderMap, HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::page_view::TimeRange;
use parallax_core::text::accept::media_ranges;

use super::authorize;
use super::document_response::document;
use super::html_pages::year_and_month;
use crate::http::HttpContext;
use crate::http::error::ApiError;
use crate::http::response::header_values;
use crate::http::route::{HandlerResult, HttpRoute, RoutedRequest, public_route};
use crate::page_cache::{DocumentKind, monitor_detail, run_blocking};
use crate::service::authorize::AuthorizedPage;
use crate::service::{ServiceError, ServiceResult, Services};
use crate::views::feeds::FeedSite;
use crate::views::markdown_page;

/// The routes.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    macro_rules! row {
        ($path:literal, $handler:ident) => {
            ($path, vec![(Method::GET, public_route(|context, call| $handler(context, call).boxed()))])
        };
    }
    vec![
        row!("/p/{slug}.md", page),
        row!("/p/{slug}/index.md", page),
        row!("/p/{slug}/history.md", history),
        row!("/p/{slug}/history/{month}.md", month),
        row!("/p/{slug}/incidents/{incident}.md", incident),
        row!("/p/{slug}/monitors/{monitor}.md", monitor),
        row!("/p/{slug}/llms.txt", guide),
    ]
}

/// `GET /p/{slug}.md`, `GET /p/{slug}/index.md`
async fn page(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    markdown_response(&context, &call.headers, &page, DocumentKind::Page(None)).await
}

/// `GET /p/{slug}/history.md`
async fn history(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let (year, month) = context.service.public_pages.this_month(&page);
    markdown_response(&context, &call.headers, &page, DocumentKind::Month(year, month)).await
}

/// `GET /p/{slug}/history/{month}.md`
async fn month(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let (first, last) = context.service.public_pages.months(&page).await?;
    let asked = year_and_month(call.path_param("month")?).filter(|month| (first..=last).contains(month));
    let (year, month) = asked.ok_or(ApiError::PageNotFound)?;
    markdown_response(&context, &call.headers, &page, DocumentKind::Month(year, month)).await
}

/// `GET /p/{slug}/incidents/{incident}.md`
async fn incident(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let id = call.id("incident").map_err(|_| ApiError::PageNotFound)?;
    markdown_response(&context, &call.headers, &page, DocumentKind::Incident(id)).await
}

/// `GET /p/{slug}/monitors/{monitor}.md`
async fn monitor(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let id = call.id("monitor").map_err(|_| ApiError::PageNotFound)?;
    markdown_response(&context, &call.headers, &page, DocumentKind::Monitor(id, None)).await
}

/// `GET /p/{slug}/llms.txt`
async fn guide(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    markdown_response(&context, &call.headers, &page, DocumentKind::Other("llms.txt")).await
}

/// Serves a document of the page as Markdown.
pub(super) async fn markdown_response(
    context: &HttpContext,
    headers: &HeaderMap,
    page: &AuthorizedPage,
    paper: DocumentKind,
) -> HandlerResult {
    let (service, admitted, which) = (context.service.clone(), page.clone(), paper.clone());
    let draw = move || async move { render(&service, &admitted, which).await.map(String::into_bytes) };
    let kept = context
        .page_cache
        .get_or_render(page, DocumentKind::Markdown(Box::new(paper)), markdown_page::MEDIA, draw)
        .await;
    let kept = kept.map_err(|error| match error {
        ServiceError::NotFound => ApiError::PageNotFound,
        other => other.into(),
    })?;
    Ok(vary_on_accept(page, document(page, &kept, headers)))
}

/// Marks a response as depending on the `Accept` header.
pub(super) fn vary_on_accept(
    page: &AuthorizedPage,
    reply: crate::http::response::HttpResponse,
) -> crate::http::response::HttpResponse {
    let vary = if page.is_protected() { "accept, accept-encoding, cookie" } else { "accept, accept-encoding" };
    reply.with(VARY, HeaderValue::from_static(vary))
}

async fn render(service: &Services, page: &AuthorizedPage, paper: DocumentKind) -> ServiceResult<String> {
    let address = service.pages.url(page.page());
    let (own, now) = (page.page().clone(), service.now());
    match paper {
        DocumentKind::Month(year, month) => {
            let notices = service.public_pages.incidents_in_month(page, year, month).await?;
            Ok(markdown_page::history_page(FeedSite { page: &own, url: &address }, (year, month), &notices, now))
        }
        DocumentKind::Incident(id) => {
            let notice = service.public_pages.incident(page, id).await?;
            Ok(markdown_page::incident_page(FeedSite { page: &own, url: &address }, &notice, now))
        }
        DocumentKind::Monitor(id, range) => {
            let closer = service.public_pages.monitor_detail(page, id, range).await?;
            let close = monitor_detail(&closer, page.path_prefix());
            Ok(markdown_page::monitor_page(FeedSite { page: &own, url: &address }, &close))
        }
        DocumentKind::BadgeData | DocumentKind::Other(_) => {
            Ok(markdown_page::llms_txt(FeedSite { page: &own, url: &address }))
        }
        DocumentKind::Page(_)
        | DocumentKind::Status
        | DocumentKind::StatusFeed(_)
        | DocumentKind::Embed(_)
        | DocumentKind::Markdown(_) => {
            let board = service.public_pages.view(page, Some(TimeRange::Quarter)).await?;
            let draw =
                move || Ok::<_, Infallible>(markdown_page::status_page(FeedSite { page: &own, url: &address }, &board));
            run_blocking(draw).await
        }
    }
}

/// Returns true if the client lists Markdown and prefers it at least as much as HTML (RFC 9110, 12.5.1). Browsers
/// don't list it.
pub(super) fn prefers_markdown(headers: &HeaderMap) -> bool {
    values_prefer_markdown(header_values(headers, &ACCEPT))
}

/// Like [`prefers_markdown`], for values of `accept`.
pub(super) fn values_prefer_markdown<'a>(accepted: impl Iterator<Item = &'a str>) -> bool {
    let (mut markdown, mut html) = (0.0, 0.0);
    for range in media_ranges(accepted) {
        if range.is("text/markdown") {
            markdown = range.weight;
        } else if range.is("text/html") {
            html = range.weight;
        }
    }
    markdown > 0.0 && markdown >= html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_for_those_who_name_it_and_like_html_no_better() {
        for (accepted, expected) in [
            ("text/markdown", true),
            ("text/markdown, text/html, */*", true),
            ("text/html;q=0.9, Text/Markdown;q=0.9", true),
            ("text/html, text/markdown;q=0.8", false),
            ("text/markdown;q=0", false),
            ("text/markdown;q=x", false),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false),
            ("*/*", false),
            ("", false),
        ] {
            let headers = [(ACCEPT, accepted.parse().unwrap())].into_iter().collect();
            assert_eq!(prefers_markdown(&headers), expected, "{accepted}");
        }
    }
}
