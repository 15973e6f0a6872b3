//! The 404 page for people. It is the same for a missing page and one the visitor may not see, so it has no page's
//! branding, language or name.

use ::http::HeaderMap;

use super::html_pages::accepts_html;
use crate::http::HttpContext;
use crate::http::error::ApiError;
use crate::service::authorize::PageAddress;
use crate::views::access_pages::AccessPage;

/// Converts a not-found error: people get an HTML page, programs JSON.
pub(in crate::http) fn not_found_for_people(
    context: &HttpContext,
    headers: &HeaderMap,
    is_own_host: bool,
    refused: ApiError,
) -> ApiError {
    match refused {
        ApiError::PageNotFound | ApiError::NoRoute | ApiError::NotFoundWithHint(_) if accepts_html(headers) => {
            let door = if is_own_host { PageAddress::OwnHost } else { PageAddress::BasePath };
            ApiError::NotFound(AccessPage::not_found(context.service.hosts.shared_prefix(door)).html())
        }
        other => other,
    }
}
