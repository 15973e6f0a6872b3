//! The HTML pages of a status page: overview, history, incidents and monitors, and its status as JSON.

use std::sync::Arc;

use ::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, LINK};
use ::http::{HeaderMap, HeaderValue};
use parallax_core::page_view::TimeRange;

use super::document_response::{allow_cross_origin, document};
use super::form::POLICY as FORM_POLICY;
use super::markdown_pages::{markdown_response, prefers_markdown, vary_on_accept};
use super::{authorize_feed, authorize_or_login};
use crate::http::HttpContext;
use crate::http::api::pages::status;
use crate::http::error::ApiError;
use crate::http::response::HttpResponse;
use crate::http::route::{HandlerResult, RoutedRequest};
use crate::page_cache::{CompressedDocument, DocumentKind};
use crate::service::ServiceError;
use crate::service::authorize::AuthorizedPage;
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
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let overview = service.public_pages.public_overview(&admitted).await?;
        Ok(status::to_value(&service, &overview).to_string().into_bytes())
    };
    let written = context.page_cache.get_or_render(&page, DocumentKind::Status, "application/json", draw).await?;
    Ok(allow_cross_origin(&page, document(&page, &written, &call.headers)))
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
    let asked = year_and_month(call.path_param("month")?).filter(|month| (first..=last).contains(month));
    serve_or_not_found(&context, call, &page, asked.map(|(year, month)| DocumentKind::Month(year, month))).await
}

/// `GET /p/{slug}/incidents/{incident}`
pub(super) async fn incident(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_or_login(&context, &call)?;
    let asked = call.id("incident").ok().map(DocumentKind::Incident);
    serve_or_not_found(&context, call, &page, asked).await
}

/// `GET /p/{slug}/monitors/{monitor}`
pub(super) async fn monitor(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_or_login(&context, &call)?;
    let range = range(&call.query);
    let asked = call.id("monitor").ok().map(|id| DocumentKind::Monitor(id, range));
    serve_or_not_found(&context, call, &page, asked).await
}

/// Reads the range from the query. Unknown values mean none, so that there are few documents: one for each range,
/// and one for the default.
fn range(query: &str) -> Option<TimeRange> {
    let asked = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "range");
    asked.and_then(|(_, name)| TimeRange::from_name(&name))
}

/// Serves the requested document. People get a not-found page in the page's language.
async fn serve_or_not_found(
    context: &HttpContext,
    call: RoutedRequest<()>,
    page: &AuthorizedPage,
    asked: Option<DocumentKind>,
) -> HandlerResult {
    let is_for_people = accepts_html(&call.headers);
    let answer = match asked {
        Some(asked) => serve_and_index(context, call, page, asked).await,
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
            Err(ApiError::NotFound(view.html()))
        }
        other => other,
    }
}

/// Returns true for a browser's page load. Programs accept anything and get JSON.
pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).is_some_and(|accept| accept.contains("text/html"))
}

async fn serve_and_index(
    context: &HttpContext,
    call: RoutedRequest<()>,
    page: &AuthorizedPage,
    paper: DocumentKind,
) -> HandlerResult {
    let reply = serve(context, &call.headers, page, &paper).await?;
    context.response_index.insert(context, &call, page, &paper);
    Ok(reply)
}

async fn serve(
    context: &HttpContext,
    headers: &HeaderMap,
    page: &AuthorizedPage,
    paper: &DocumentKind,
) -> HandlerResult {
    if prefers_markdown(headers) {
        return markdown_response(context, headers, page, paper.clone()).await;
    }
    let drawn = context.page_cache.get(page, paper.clone()).await.map_err(|error| match error {
        ServiceError::NotFound => ApiError::PageNotFound,
        other => other.into(),
    })?;
    Ok(html_response(context, page, &drawn, headers))
}

/// Builds the response with a document for people.
pub(super) fn html_response(
    context: &HttpContext,
    page: &AuthorizedPage,
    drawn: &CompressedDocument,
    headers: &HeaderMap,
) -> HttpResponse {
    with_links(context, page, vary_on_accept(page, document(page, drawn, headers)))
}

/// Adds links to the machine-readable views (RFC 8288; `status` and `service-desc`: RFC 8631; `api-catalog`: RFC
/// 9727).
fn with_links(context: &HttpContext, page: &AuthorizedPage, reply: HttpResponse) -> HttpResponse {
    // A page's own host serves no API.
    let (root, base) = (page.path_prefix(), context.service.base_url());
    let links = format!(
        "<{root}/status.json>; rel=\"status\"; type=\"application/json\", \
         <{root}/feed.atom>; rel=\"alternate\"; type=\"application/atom+xml\", \
         <{base}/api/v1/openapi.json>; rel=\"service-desc\"; type=\"application/json\", \
         <{root}/.well-known/api-catalog>; rel=\"api-catalog\""
    );
    match HeaderValue::try_from(links) {
        Ok(links) => reply.with(LINK, links),
        Err(_) => reply,
    }
}

/// Reads a month from its path: `2026-11`.
pub(super) fn year_and_month(text: &str) -> Option<(i32, u32)> {
    let (year, month) = text.split_once('-')?;
    let is_plain = year.len() == 4 && month.len() == 2 && text.bytes().all(|it| it.is_ascii_digit() || it == b'-');
    let (year, month) = (year.parse().ok()?, month.parse().ok()?);
    (is_plain && (1..=12).contains(&month)).then_some((year, month))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_range_is_none() {
        for (query, chosen) in [
            ("range=24h", TimeRange::Day),
            ("a=b&range=7d", TimeRange::Week),
            ("range=30d", TimeRange::Month),
            ("range=90d", TimeRange::Quarter),
        ] {
            assert_eq!(range(query), Some(chosen), "{query}");
        }
        for none in ["", "range=", "range=1y", "range=24H", "Range=24h"] {
            assert_eq!(range(none), None, "{none}");
        }
    }

    #[test]
    fn a_month_has_one_address() {
        assert_eq!(year_and_month("2026-11"), Some((2026, 11)));
        for bad in ["2026-1", "2026-13", "2026-00", "26-11", "+202-11", "2026-11-01", "2026", ""] {
            assert_eq!(year_and_month(bad), None, "{bad}");
        }
    }
}
