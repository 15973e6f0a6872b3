//! A page's images, and its accent colour as a style sheet, at addresses that change with the content.

use std::sync::Arc;

use ::http::HeaderValue;
use ::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, VARY};
use parallax_core::page::look::PictureUse;

use super::enter;
use super::served::FOREVER;
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Error;
use crate::service::gate::Admitted;
use crate::views::accent;

/// Content security policy for an image that is opened directly: styles allowed, sandboxed.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// `GET /p/{slug}/logo/{digest}` and `GET /p/{slug}/favicon/{digest}`
pub(super) async fn show(context: Arc<Context>, call: Call<()>, usage: PictureUse) -> Answer {
    let page = enter(&context, &call)?;
    let found = context.service.picture(&page, usage, call.param("digest")?).await;
    let (kind, bytes) = found.map_err(|error| match error {
        Error::NotFound => Refused::Page,
        other => other.into(),
    })?;
    let reply = Reply::bytes(kind.media(), bytes);
    Ok(kept(&page, reply.with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))))
}

/// `GET /p/{slug}/accent/{digest}`: the digest is the colour's six digits.
pub(super) async fn accent(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let asked = call.param("digest")?;
    let color = page.page().look.accent.filter(|color| color.to_string().strip_prefix('#') == Some(asked));
    let color = color.ok_or(Refused::Page)?;
    Ok(kept(&page, Reply::bytes("text/css; charset=utf-8", accent::sheet(color))))
}

/// Makes the response cacheable forever if everybody may see the page, and uncacheable otherwise.
fn kept(page: &Admitted, reply: Reply) -> Reply {
    if page.is_guarded() {
        reply
            .with(CACHE_CONTROL, HeaderValue::from_static("private, no-store"))
            .with(VARY, HeaderValue::from_static("cookie"))
            .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
    } else {
        reply.with(CACHE_CONTROL, HeaderValue::from_static(FOREVER))
    }
}
