//! Visitors' forms: bounded in size, and for logins accepted only from the service's own pages.

use std::borrow::Cow;
use std::collections::BTreeSet;

use ::http::HeaderMap;
use ::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
};
use parallax_core::validation::ValidationErrors;
use url::{Url, form_urlencoded};

use crate::http::error::ApiError;
use crate::http::json_body;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// Content security policy of form pages: forms, styles, scripts and images of the same origin only.
pub(super) const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// Replies with a page that is never cached or indexed.
pub(super) fn uncached_page(html: String) -> HttpResponse {
    HttpResponse::html(html)
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with(CONTENT_SECURITY_POLICY, POLICY)
        .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
}

/// Replies with a page for a visitor without access, such as a login form. Its referrer policy sends the origin to the
/// service's own host only.
pub(super) fn access_page(html: String) -> HttpResponse {
    uncached_page(html).with(REFERRER_POLICY, HeaderValue::from_static("same-origin"))
}

/// Returns the query's parameter `t`; empty if it is missing.
pub(super) fn token_in_query(query: &str) -> String {
    let token = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "t");
    token.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Refuses a form that a browser sends from another site (Fetch Metadata; RFC 6454, 7.3). Clients other than
/// browsers send neither header, and carry no visitor's cookies.
pub(in crate::http) fn check_form_origin(headers: &HeaderMap, base_url: &str) -> Result<(), ApiError> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_own = match (text(HeaderName::from_static("sec-fetch-site")), text(ORIGIN)) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => Url::parse(origin).is_ok_and(|origin| {
            let target = text(HOST).and_then(|host| Url::parse(&format!("{}://{host}", origin.scheme())).ok());
            let is_named = target.is_some_and(|target| target.origin() == origin.origin());
            // A proxy may forward the request under another host name.
            is_named || Url::parse(base_url).is_ok_and(|base| base.origin() == origin.origin())
        }),
        (None, None) => true,
    };
    if is_own { Ok(()) } else { Err(ApiError::CrossOrigin) }
}

/// Like [`check_form_origin`], for buttons on the pages themselves, whose policy is `no-referrer`: over plain HTTP a
/// browser then sends `Origin: null` and nothing else (Fetch, 3.2.5).
pub(super) fn check_button_origin(headers: &HeaderMap, base_url: &str) -> Result<(), ApiError> {
    let is_untold = headers.get(ORIGIN).is_some_and(|origin| origin == "null");
    if is_untold && !headers.contains_key("sec-fetch-site") {
        return Ok(());
    }
    check_form_origin(headers, base_url)
}

/// A submitted form.
pub(in crate::http) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Reads a form of bounded size (`application/x-www-form-urlencoded`, URL standard).
    pub(in crate::http) async fn read<C>(call: &mut RoutedRequest<C>) -> Result<Self, ValidationErrors> {
        let kind = call.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(ValidationErrors::single("Content-Type", "must be application/x-www-form-urlencoded"));
        }
        let body = json_body::read_bytes(&call.headers, &mut call.body).await?;
        let owned = |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.into_owned());
        Ok(Self(form_urlencoded::parse(&body).map(owned).collect()))
    }

    /// Returns a field's first value as it was typed.
    pub(in crate::http) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// Returns a field's first value; none if it is empty.
    pub(in crate::http) fn one(&self, name: &str) -> Option<String> {
        Some(self.raw(name).trim()).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// Returns the selected monitors; none if no box is ticked, which means the whole page.
    pub(super) fn monitors(&self) -> Option<Vec<String>> {
        let ids: BTreeSet<&String> = self.0.iter().filter(|(name, _)| name == "monitors").map(|(_, id)| id).collect();
        (!ids.is_empty()).then(|| ids.into_iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_accepted_only_from_its_own_host() {
        let is_allowed = |pairs: &[(&'static str, &str)]| {
            let header = |(name, value): &(&'static str, &str)| {
                (HeaderName::from_static(name), value.parse::<HeaderValue>().unwrap())
            };
            let headers: HeaderMap = pairs.iter().map(header).collect();
            check_form_origin(&headers, "https://status.example").is_ok()
        };
        let host = ("host", "shop.pages.example");
        for allowed in [
            &[host][..],
            &[host, ("sec-fetch-site", "same-origin"), ("origin", "null")],
            &[host, ("sec-fetch-site", "none")],
            &[host, ("origin", "https://shop.pages.example")],
            &[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8080")],
            &[("host", "inner:8080"), ("origin", "https://status.example")],
        ] {
            assert!(is_allowed(allowed), "{allowed:?}");
        }
        for rejected in [
            &[host, ("sec-fetch-site", "cross-site")][..],
            &[host, ("sec-fetch-site", "same-site"), ("origin", "https://shop.pages.example")],
            &[host, ("origin", "null")],
            &[host, ("origin", "https://blog.pages.example")],
            &[host, ("origin", "https://shop.pages.example.evil.example")],
            &[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8081")],
        ] {
            assert!(!is_allowed(rejected), "{rejected:?}");
        }
        let untold: HeaderMap = [(ORIGIN, HeaderValue::from_static("null"))].into_iter().collect();
        assert!(check_button_origin(&untold, "http://192.0.2.1").is_ok());
    }
}
