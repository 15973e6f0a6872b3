//! The preview image of links to a page.

use std::sync::Arc;

use ::http::{HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::page_view::TimeRange;
use parallax_service::ServiceError;
use tokio::sync::Semaphore;

use super::authorize;
use crate::http::HttpContext;
use crate::http::document_response::{document, with_cache_lifetime};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::{DocumentKind, run_blocking};
use crate::views::link_preview::{PreviewContent, render_png};

/// Concurrent drawings at most: each takes 3 MB and about ten milliseconds of CPU.
static DRAWING: Semaphore = Semaphore::const_new(2);
/// Cache lifetime. The address changes with the state, but an old address shows the current state.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=300, stale-while-revalidate=3600");

/// The route.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    let route = public_route(|context, call| picture(context, call).boxed());
    vec![("/p/{slug}/og-{state}.png", vec![(Method::GET, route)])]
}

/// `GET /p/{slug}/og-{state}.png`
async fn picture(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let state = call.path_param("state")?;
    let is_one = state.len() == 12 && state.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_one {
        return Err(ApiError::PageNotFound);
    }
    let (service, authorized) = (context.service.clone(), page.clone());
    let render_image = move || async move {
        let page_view = service.public_pages.view(&authorized, Some(TimeRange::Quarter)).await?;
        let _turn = DRAWING.acquire().await.map_err(|error| ServiceError::Internal(error.to_string()))?;
        run_blocking(move || render_png(&PreviewContent::of(&page_view))).await
    };
    let rendered =
        context.page_cache.get_or_render(&page, DocumentKind::Other("og.png"), "image/png", render_image).await?;
    Ok(with_cache_lifetime(&page, document(&page, &rendered, &call.headers), FRESH))
}
