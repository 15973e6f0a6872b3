//! Pages as Markdown, by the path's extension or by content negotiation.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::{HeaderMap, Method};
use futures_util::FutureExt;
use parallax_core::page_view::TimeRange;
use parallax_service::page_access::authorize::AuthorizedPage;
use parallax_service::{ServiceError, ServiceResult, Services};

use super::authorize;
use super::page_params::year_and_month;
use crate::http::HttpContext;
use crate::http::document_response::{document, vary_on_accept};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::{DocumentKind, monitor_detail, run_blocking};
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
    let requested = year_and_month(call.path_param("month")?).filter(|month| (first..=last).contains(month));
    let (year, month) = requested.ok_or(ApiError::PageNotFound)?;
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
    kind: DocumentKind,
) -> HandlerResult {
    let (service, authorized, document_kind) = (context.service.clone(), page.clone(), kind.clone());
    let make = move || async move { render(&service, &authorized, document_kind).await.map(String::into_bytes) };
    let rendered = context
        .page_cache
        .get_or_render(page, DocumentKind::Markdown(Box::new(kind)), markdown_page::MEDIA, make)
        .await;
    let rendered = rendered.map_err(|error| match error {
        ServiceError::NotFound => ApiError::PageNotFound,
        other => other.into(),
    })?;
    Ok(vary_on_accept(page, document(page, &rendered, headers)))
}

async fn render(service: &Services, page: &AuthorizedPage, kind: DocumentKind) -> ServiceResult<String> {
    let address = service.pages.url(page.page());
    let (site, now) = (FeedSite { page: page.page(), url: &address }, service.now());
    match kind {
        DocumentKind::Month(year, month) => {
            let notices = service.public_pages.incidents_in_month(page, year, month).await?;
            Ok(markdown_page::history_page(site, (year, month), &notices, now))
        }
        DocumentKind::Incident(id) => {
            let notice = service.public_pages.incident(page, id).await?;
            Ok(markdown_page::incident_page(site, &notice, now))
        }
        DocumentKind::Monitor(id, range) => {
            let detail = service.public_pages.monitor_detail(page, id, range).await?;
            let view = monitor_detail(&detail, page.path_prefix());
            Ok(markdown_page::monitor_page(site, &view))
        }
        DocumentKind::BadgeData | DocumentKind::Other(_) => Ok(markdown_page::llms_txt(site)),
        DocumentKind::Page(_)
        | DocumentKind::Status
        | DocumentKind::StatusFeed(_)
        | DocumentKind::Embed(_)
        | DocumentKind::Markdown(_) => {
            let page_view = service.public_pages.view(page, Some(TimeRange::Quarter)).await?;
            let page = page.clone();
            let make = move || {
                let site = FeedSite { page: page.page(), url: &address };
                Ok::<_, Infallible>(markdown_page::status_page(site, &page_view))
            };
            run_blocking(make).await
        }
    }
}
