//! Badges of a page and its monitors, as SVG and as Shields endpoint JSON.

use std::sync::Arc;

use ::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use ::http::{HeaderValue, Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::id::MonitorId;
use parallax_core::refusal::Refusals;

use super::enter_feed;
use super::served::{for_long, guarded, shared};
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::reply::{Reply, is_known, tag_of};
use crate::http::route::{Answer, Call, Route, open};
use crate::service::Error;
use crate::views::badge::{Badge, DAYS, MAX_LABEL, Metric, Style};

/// The image contains its styles and loads nothing.
const POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
/// Version of the drawing: the program's version and the template.
const DRAWING: (&str, &str) = (env!("CARGO_PKG_VERSION"), include_str!("../../../templates/feeds/badge.svg"));
/// Cache lifetime. Together with the age of its data (`Paper::Badges`), a badge is at most a minute old. Stale
/// badges must not be shown.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=30, s-maxage=30, must-revalidate");

/// The routes.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    const GET: Method = Method::GET;
    vec![
        ("/p/{slug}/badge.svg", vec![(GET, open(|context, call| picture(context, call).boxed()))]),
        ("/p/{slug}/badge.json", vec![(GET, open(|context, call| shields(context, call).boxed()))]),
        (
            "/p/{slug}/monitors/{monitor}/badge.svg",
            vec![(GET, open(|context, call| picture(context, call).boxed()))],
        ),
        (
            "/p/{slug}/monitors/{monitor}/badge.json",
            vec![(GET, open(|context, call| shields(context, call).boxed()))],
        ),
    ]
}

/// `GET /p/{slug}/badge.svg`, `GET /p/{slug}/monitors/{monitor}/badge.svg`
async fn picture(context: Arc<Context>, call: Call<()>) -> Answer {
    let wish = Wish::read(&call.query)?;
    answer(&context, call, wish, "image/svg+xml", |badge, style| {
        badge.svg(style).map_err(|error| Error::Internal(error.to_string()).into())
    })
    .await
}

/// `GET /p/{slug}/badge.json`, `GET /p/{slug}/monitors/{monitor}/badge.json`
async fn shields(context: Arc<Context>, call: Call<()>) -> Answer {
    let wish = Wish::read(&call.query)?;
    answer(&context, call, wish, "application/json", |badge, _| Ok(badge.shields().to_string().into_bytes()))
        .await
}

/// Writes the requested badge. The placeholder badge is the same for a missing page and one the visitor may not
/// see.
async fn answer(
    context: &Context,
    call: Call<()>,
    wish: Wish,
    media: &'static str,
    write: impl Fn(&Badge, Style) -> Result<Vec<u8>, Refused> + Send + Sync,
) -> Answer {
    let nothing = || {
        let badge = Badge::of_nothing(wish.metric, wish.label.clone());
        let reply = Reply::bytes(media, write(&badge, wish.style)?).of(StatusCode::NOT_FOUND);
        let reply = reply.with(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(reply.with(CONTENT_SECURITY_POLICY, POLICY))
    };
    let page = match enter_feed(context, &call) {
        Ok(page) => page,
        Err(Refused::Page) => return nothing(),
        Err(other) => return Err(other),
    };
    let monitor = match call.param("monitor") {
        Ok(id) => match id.parse::<MonitorId>() {
            Ok(id) => Some(id),
            Err(_) => return nothing(),
        },
        Err(_) => None,
    };
    let facts = context.boards.facts(&page).await?;
    let Some(mark) = facts.mark(monitor) else { return nothing() };
    let badge = Badge::of(mark, wish.metric, wish.label.clone());
    let reply = if page.is_guarded() {
        guarded(Reply::bytes(media, write(&badge, wish.style)?))
    } else {
        // The tag covers content and style, so a visitor who has the badge gets 304 before anything is drawn.
        let tag = tag_of(&(DRAWING, media, &badge, wish.style));
        let body = if is_known(&tag, &call.headers) { Vec::new() } else { write(&badge, wish.style)? };
        Reply::bytes(media, body).tagged_as(&tag, &call.headers)
    };
    let reply = for_long(&page, shared(&page, reply), FRESH);
    Ok(reply.with(CONTENT_SECURITY_POLICY, POLICY))
}

/// Content and style of a requested badge.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    metric: Metric,
    style: Style,
    label: Option<String>,
}

impl Wish {
    /// Reads `metric`, `days`, `style` and `label`; other parameters are ignored, since they are used to bypass
    /// caches.
    fn read(query: &str) -> Result<Self, Refused> {
        let (mut metric, mut days, mut style, mut label) = (None, None, None, None);
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "metric" => metric = Some(value),
                "days" => days = Some(value),
                "style" => style = Some(value),
                "label" => label = Some(value.into_owned()),
                _ => {}
            }
        }
        let days = match days.as_deref().map(str::parse) {
            None => 30,
            Some(Ok(days)) if DAYS.contains(&days) => days,
            Some(_) => return Err(Refusals::one("days", "must be 1, 7, 30 or 90").into()),
        };
        let metric = match metric.as_deref() {
            None | Some("status") => Metric::Status,
            Some("uptime") => Metric::Uptime(days),
            Some("response") => Metric::Response,
            Some(_) => return Err(Refusals::one("metric", "must be status, uptime or response").into()),
        };
        let style = match style.as_deref() {
            None | Some("flat") => Style::Flat,
            Some("flat-square") => Style::Square,
            Some("for-the-badge") => Style::Large,
            Some(_) => {
                return Err(Refusals::one("style", "must be flat, flat-square or for-the-badge").into());
            }
        };
        if label.as_ref().is_some_and(|label| label.chars().count() > MAX_LABEL) {
            return Err(Refusals::one("label", "must have at most 64 characters").into());
        }
        Ok(Self { metric, style, label })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_or_refused_by_its_name() {
        let read = Wish::read("metric=uptime&days=7&style=for-the-badge&label=a%20%3Cb%3E&v=1").unwrap();
        let label = Some("a <b>".to_owned());
        assert_eq!(read, Wish { metric: Metric::Uptime(7), style: Style::Large, label });
        let label = format!("label={}", "%C3%BC".repeat(65));
        for (query, field) in
            [("metric=x", "metric"), ("days=2", "days"), ("style=", "style"), (label.as_str(), "label")]
        {
            let Err(Refused::Service(Error::Invalid(faults))) = Wish::read(query) else { panic!("{query}") };
            assert!(faults.iter().any(|fault| fault.field == field), "{query}");
        }
    }
}
