//! The human-readable API reference, rendered from the same description as `openapi.json`.

mod model;
mod shell;
mod words;

use std::sync::Arc;

use crate::http::Context;
use crate::http::public::reference;
use crate::http::route::{Answer, Call};
use crate::publish::{Document, off_the_runtime};
use crate::views::Unprintable;

const HTML: &str = "text/html; charset=utf-8";

/// `GET /api/v1/docs`: needs no key and is the same for everybody.
pub(super) async fn show(context: Arc<Context>, call: Call<()>) -> Answer {
    let document = context.reference.get_or_try_init(|| drawn(&context)).await?;
    Ok(reference(document, context.service.base_url(), &call.headers))
}

/// Renders the page once, on a blocking thread, because compression takes long.
async fn drawn(context: &Arc<Context>) -> crate::service::Result<Document> {
    let context = Arc::clone(context);
    off_the_runtime(move || {
        let html = model::reference(&context).html()?;
        Ok::<_, Unprintable>(Document::press(HTML, &html))
    })
    .await
}

#[cfg(test)]
mod tests;
