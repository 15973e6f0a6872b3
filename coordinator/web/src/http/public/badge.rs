//! Badges of a page and its monitors, as SVG and as Shields endpoint JSON.

use std::sync::Arc;

use ::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use ::http::{HeaderValue, Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::id::MonitorId;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;

use super::authorize_feed;
use crate::http::HttpContext;
use crate::http::document_response::{allow_cross_origin, uncacheable, with_cache_lifetime};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::{HttpResponse, etag_of, matches_if_none_match};
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::badge::{Badge, BadgeMetric, BadgeStyle, MAX_LABEL, UPTIME_DAYS};

/// The image contains its styles and loads nothing.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
/// Version of the drawing: the program's version and the template as it is rendered.
const DRAWING: (&str, &str) =
    (env!("CARGO_PKG_VERSION"), include_str!(concat!(env!("OUT_DIR"), "/templates/feeds/badge.svg")));
/// Cache lifetime. Together with the age of its data (`DocumentKind::BadgeData`), a badge is at most a minute old.
/// Stale badges must not be shown.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=30, s-maxage=30, must-revalidate");

/// The routes.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    vec![
        ("/p/{slug}/badge.svg", vec![(GET, public_route(|context, call| picture(context, call).boxed()))]),
        ("/p/{slug}/badge.json", vec![(GET, public_route(|context, call| shields(context, call).boxed()))]),
        (
            "/p/{slug}/monitors/{monitor}/badge.svg",
            vec![(GET, public_route(|context, call| picture(context, call).boxed()))],
        ),
        (
            "/p/{slug}/monitors/{monitor}/badge.json",
            vec![(GET, public_route(|context, call| shields(context, call).boxed()))],
        ),
    ]
}

/// `GET /p/{slug}/badge.svg`, `GET /p/{slug}/monitors/{monitor}/badge.svg`
async fn picture(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let query = BadgeQuery::read(&call.query)?;
    answer(&context, call, query, "image/svg+xml", |badge, style| {
        badge.svg(style).map_err(|error| ServiceError::Internal(error.to_string()).into())
    })
    .await
}

/// `GET /p/{slug}/badge.json`, `GET /p/{slug}/monitors/{monitor}/badge.json`
async fn shields(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let query = BadgeQuery::read(&call.query)?;
    answer(&context, call, query, "application/json", |badge, _| Ok(badge.shields().to_string().into_bytes())).await
}

/// Writes the requested badge. The placeholder badge is the same for a missing page and one the visitor may not
/// see.
async fn answer(
    context: &HttpContext,
    call: RoutedRequest<()>,
    query: BadgeQuery,
    media: &'static str,
    write: impl Fn(&Badge, BadgeStyle) -> Result<Vec<u8>, ApiError> + Send + Sync,
) -> HandlerResult {
    let nothing = || {
        let badge = Badge::not_found(query.metric, query.label.clone());
        let reply = HttpResponse::bytes(media, write(&badge, query.style)?).with_status(StatusCode::NOT_FOUND);
        let reply = reply.with(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(reply.with(CONTENT_SECURITY_POLICY, POLICY))
    };
    let page = match authorize_feed(context, &call) {
        Ok(page) => page,
        Err(ApiError::PageNotFound) => return nothing(),
        Err(other) => return Err(other),
    };
    let monitor = match call.path_param("monitor") {
        Ok(id) => match id.parse::<MonitorId>() {
            Ok(id) => Some(id),
            Err(_) => return nothing(),
        },
        Err(_) => None,
    };
    let data = context.page_cache.badge_data(&page).await?;
    let Some(values) = data.values(monitor) else { return nothing() };
    let badge = Badge::of(values, query.metric, query.label.clone());
    let reply = if page.is_protected() {
        uncacheable(HttpResponse::bytes(media, write(&badge, query.style)?))
    } else {
        // The tag covers content and style, so a visitor who has the badge gets 304 before anything is drawn.
        let tag = etag_of(&(DRAWING, media, &badge, query.style));
        let body = if matches_if_none_match(&tag, &call.headers) { Vec::new() } else { write(&badge, query.style)? };
        HttpResponse::bytes(media, body).with_known_etag(&tag, &call.headers)
    };
    let reply = with_cache_lifetime(&page, allow_cross_origin(&page, reply), FRESH);
    Ok(reply.with(CONTENT_SECURITY_POLICY, POLICY))
}

/// Content and style of a requested badge.
#[derive(Debug, PartialEq, Eq)]
struct BadgeQuery {
    metric: BadgeMetric,
    style: BadgeStyle,
    label: Option<String>,
}

impl BadgeQuery {
    /// Reads `metric`, `days`, `style` and `label`; other parameters are ignored, since they are used to bypass
    /// caches.
    fn read(query: &str) -> Result<Self, ApiError> {
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
            Some(Ok(days)) if UPTIME_DAYS.contains(&days) => days,
            Some(_) => return Err(ValidationErrors::single("days", "must be 1, 7, 30 or 90").into()),
        };
        let metric = match metric.as_deref() {
            None | Some("status") => BadgeMetric::Status,
            Some("uptime") => BadgeMetric::Uptime(days),
            Some("response") => BadgeMetric::Response,
            Some(_) => {
                return Err(ValidationErrors::single("metric", "must be status, uptime or response").into());
            }
        };
        let style = match style.as_deref() {
            None | Some("flat") => BadgeStyle::Flat,
            Some("flat-square") => BadgeStyle::Square,
            Some("for-the-badge") => BadgeStyle::Large,
            Some(_) => {
                return Err(ValidationErrors::single("style", "must be flat, flat-square or for-the-badge").into());
            }
        };
        if label.as_ref().is_some_and(|label| label.chars().count() > MAX_LABEL) {
            return Err(ValidationErrors::single("label", "must have at most 64 characters").into());
        }
        Ok(Self { metric, style, label })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_query_parameter_is_named() {
        let read = BadgeQuery::read("metric=uptime&days=7&style=for-the-badge&label=a%20%3Cb%3E&v=1").unwrap();
        let label = Some("a <b>".to_owned());
        assert_eq!(read, BadgeQuery { metric: BadgeMetric::Uptime(7), style: BadgeStyle::Large, label });
        let label = format!("label={}", "%C3%BC".repeat(65));
        for (query, field) in
            [("metric=x", "metric"), ("days=2", "days"), ("style=", "style"), (label.as_str(), "label")]
        {
            let Err(ApiError::Service(ServiceError::Invalid(faults))) = BadgeQuery::read(query) else {
                panic!("{query}")
            };
            assert!(faults.iter().any(|fault| fault.field == field), "{query}");
        }
    }
}
