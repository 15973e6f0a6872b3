//! The HTML pages of a status page: overview, history, incidents and monitors, and its status as JSON.

use std::sync::Arc;

use ::http::HeaderMap;
use ::http::header::CONTENT_SECURITY_POLICY;
use parallax_service::ServiceError;
use parallax_service::page_access::authorize::AuthorizedPage;

use super::form::{POLICY as FORM_POLICY, access_page};
use super::markdown_pages::markdown_response;
use super::page_params::{range, year_and_month};
use super::{authorize_feed, authorize_or_login};
use crate::http::HttpContext;
use crate::http::api::pages::status;
use crate::http::content_negotiation::{accepts_html, prefers_markdown};
use crate::http::document_response::{allow_cross_origin, document, html_response};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::DocumentKind;
use crate::views::start_page::StartPage;
use crate::views::subscription_forms::{SubscriptionPage, SubscriptionStep};

/// `GET /`
pub(super) async fn root(context: Arc<HttpContext>, _call: RoutedRequest<()>) -> HandlerResult {
    let reply = HttpResponse::html(StartPage::new(context.service.base_url()).html());
    Ok(reply.with(CONTENT_SECURITY_POLICY, FORM_POLICY))
}

/// `GET /p/{slug}`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_or_login(&context, &call)?;
    let range = range(&call.query);
    serve_and_index(&context, call, &page, DocumentKind::Page(range)).await
}

/// `GET /p/{slug}/status.json`
pub(super) async fn status(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_feed(&context, &call)?;
    let (service, authorized) = (context.service.clone(), page.clone());
    let render = move || async move {
        let overview = service.public_pages.public_overview(&authorized).await?;
        Ok(status::to_value(&service, &overview).to_string().into_bytes())
    };
    let rendered = context.page_cache.get_or_render(&page, DocumentKind::Status, "application/json", render).await?;
    Ok(allow_cross_origin(&page, document(&page, &rendered, &call.headers)))
}

/// `GET /p/{slug}/history`
pub(super) async fn history(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_or_login(&context, &call)?;
    let (year, month) = context.service.public_pages.this_month(&page);
    // Not indexed, since the current month depends on the date.
    serve(&context, &call.headers, &page, &DocumentKind::Month(year, month)).await
}

/// `GET /p/{slug}/history/{month}`
pub(super) async fn month(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_or_login(&context, &call)?;
    let (first, last) = context.service.public_pages.months(&page).await?;
    let requested = year_and_month(call.path_param("month")?).filter(|month| (first..=last).contains(month));
    serve_or_not_found(&context, call, &page, requested.map(|(year, month)| DocumentKind::Month(year, month))).await
}

/// `GET /p/{slug}/incidents/{incident}`
pub(super) async fn incident(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_or_login(&context, &call)?;
    let requested = call.id("incident").ok().map(DocumentKind::Incident);
    serve_or_not_found(&context, call, &page, requested).await
}

/// `GET /p/{slug}/monitors/{monitor}`
pub(super) async fn monitor(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_or_login(&context, &call)?;
    let range = range(&call.query);
    let requested = call.id("monitor").ok().map(|id| DocumentKind::Monitor(id, range));
    serve_or_not_found(&context, call, &page, requested).await
}

/// Serves the requested document. People get a not-found page in the page's language.
async fn serve_or_not_found(
    context: &HttpContext,
    call: RoutedRequest<()>,
    page: &AuthorizedPage,
    requested: Option<DocumentKind>,
) -> HandlerResult {
    let is_for_people = accepts_html(&call.headers);
    let answer = match requested {
        Some(requested) => serve_and_index(context, call, page, requested).await,
        None => Err(ApiError::PageNotFound),
    };
    match answer {
        Err(ApiError::PageNotFound) if is_for_people => {
            let view = SubscriptionPage::new(
                page.page(),
                page.path_prefix(),
                SubscriptionStep::NotFound,
                context.service.now(),
            );
            Err(ApiError::NotFound(Box::new(access_page(view.html()))))
        }
        other => other,
    }
}

async fn serve_and_index(
    context: &HttpContext,
    call: RoutedRequest<()>,
    page: &AuthorizedPage,
    kind: DocumentKind,
) -> HandlerResult {
    let reply = serve(context, &call.headers, page, &kind).await?;
    context.response_index.insert(&call, page, &kind);
    Ok(reply)
}

async fn serve(
    context: &HttpContext,
    headers: &HeaderMap,
    page: &AuthorizedPage,
    kind: &DocumentKind,
) -> HandlerResult {
    if prefers_markdown(headers) {
        return markdown_response(context, headers, page, kind.clone()).await;
    }
    let rendered = context.page_cache.get(page, kind.clone()).await.map_err(|error| match error {
        ServiceError::NotFound => ApiError::PageNotFound,
        other => other.into(),
    })?;
    Ok(html_response(context.service.base_url(), page, &rendered, headers))
}
