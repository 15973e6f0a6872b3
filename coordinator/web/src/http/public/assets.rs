//! Style sheets, scripts and fonts of all pages, at addresses that change with their content.

use std::sync::{Arc, LazyLock};

use ::http::HeaderValue;
use ::http::header::CACHE_CONTROL;

use crate::http::HttpContext;
use crate::http::document_response::{IMMUTABLE, tagged_response};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::CompressedDocument;
use crate::views::assets;

/// `GET /assets/{name}`
pub(super) async fn asset(_context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    static COMPRESSED: LazyLock<Vec<(&str, CompressedDocument)>> = LazyLock::new(|| {
        let compress = |asset: &'static assets::Asset| {
            (asset.name.as_str(), CompressedDocument::compress(asset.media, asset.text.as_bytes()))
        };
        assets::all().into_iter().map(compress).collect()
    });
    let name = call.path_param("name")?;
    let (_, document) = COMPRESSED.iter().find(|(asset_name, _)| *asset_name == name).ok_or(ApiError::NoRoute)?;
    Ok(tagged_response(document, &call.headers).with(CACHE_CONTROL, HeaderValue::from_static(IMMUTABLE)))
}
