//! A page's images, and its accent colour as a style sheet, at addresses that change with the content.

use std::sync::Arc;

use ::http::HeaderValue;
use ::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, VARY};
use parallax_core::page::branding::PictureUse;
use parallax_service::ServiceError;
use parallax_service::page_access::authorize::AuthorizedPage;

use super::authorize;
use crate::http::HttpContext;
use crate::http::document_response::IMMUTABLE;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;
use crate::views::accent;

/// Content security policy for an image that is opened directly: styles allowed, sandboxed.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// `GET /p/{slug}/logo/{digest}` and `GET /p/{slug}/favicon/{digest}`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>, usage: PictureUse) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let picture = context.service.pages.picture(&page, usage, call.path_param("digest")?).await;
    let (kind, bytes) = picture.map_err(|error| match error {
        ServiceError::NotFound => ApiError::PageNotFound,
        other => other.into(),
    })?;
    let reply = HttpResponse::bytes(kind.media(), bytes);
    Ok(with_caching(&page, reply.with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))))
}

/// `GET /p/{slug}/accent/{digest}`: the digest is the colour's six digits.
pub(super) async fn accent(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let digest = call.path_param("digest")?;
    let color = page.page().branding.accent.filter(|color| color.to_string().strip_prefix('#') == Some(digest));
    let color = color.ok_or(ApiError::PageNotFound)?;
    Ok(with_caching(&page, HttpResponse::bytes("text/css; charset=utf-8", accent::accent_css(color))))
}

/// Makes the response cacheable forever if everybody may see the page, and uncacheable otherwise.
fn with_caching(page: &AuthorizedPage, reply: HttpResponse) -> HttpResponse {
    if page.is_protected() {
        reply
            .with(CACHE_CONTROL, HeaderValue::from_static("private, no-store"))
            .with(VARY, HeaderValue::from_static("cookie"))
            .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
    } else {
        reply.with(CACHE_CONTROL, HeaderValue::from_static(IMMUTABLE))
    }
}
