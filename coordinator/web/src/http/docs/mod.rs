//! The human-readable API reference, rendered from the same description as `openapi.json`.

mod curl_commands;
mod reference_content;
mod schema_rows;

use std::sync::Arc;

use crate::http::HttpContext;
use crate::http::document_response::reference;
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::{CompressedDocument, run_blocking};
use crate::views::RenderError;

const HTML: &str = "text/html; charset=utf-8";

/// `GET /api/v1/docs`: needs no key and is the same for everybody.
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let document = context.reference_page.get_or_try_init(|| rendered(&context)).await?;
    Ok(reference(document, context.service.base_url(), &call.headers))
}

/// Renders the page once, on a blocking thread, because compression takes long.
async fn rendered(context: &Arc<HttpContext>) -> parallax_service::ServiceResult<CompressedDocument> {
    let context = Arc::clone(context);
    run_blocking(move || {
        let html = reference_content::reference(&context).html()?;
        Ok::<_, RenderError>(CompressedDocument::compress(HTML, &html))
    })
    .await
}

#[cfg(test)]
mod tests;
