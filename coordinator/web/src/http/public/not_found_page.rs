//! The 404 page for people. It is the same for a missing page and one the visitor may not see, so it has no page's
//! branding, language or name.

use ::http::HeaderMap;
use parallax_service::page_access::authorize::PageAddress;

use super::form::access_page;
use crate::http::HttpContext;
use crate::http::content_negotiation::accepts_html;
use crate::http::error::ApiError;
use crate::views::access_pages::AccessPage;

/// Converts a not-found error: people get an HTML page, programs JSON.
pub(in crate::http) fn not_found_for_people(
    context: &HttpContext,
    headers: &HeaderMap,
    is_own_host: bool,
    error: ApiError,
) -> ApiError {
    match error {
        ApiError::PageNotFound | ApiError::NoRoute | ApiError::NotFoundWithHint(_) if accepts_html(headers) => {
            let address = if is_own_host { PageAddress::OwnHost } else { PageAddress::BasePath };
            let page = AccessPage::not_found(context.service.hosts.shared_prefix(address));
            ApiError::NotFound(Box::new(access_page(page.html())))
        }
        other => other,
    }
}
