//! Access check at the start of every page route: finds the page by host or path, and checks the visitor's access.

use ::http::HeaderMap;
use ::http::header::HOST;
use parallax_service::ServiceError;
use parallax_service::hosts::HostOwner;
use parallax_service::page_access::VisitorCredentials;
use parallax_service::page_access::authorize::{AccessDecision, AuthorizedPage, PageAddress};

use super::cookie;
use crate::http::HttpContext;
use crate::http::error::ApiError;
use crate::http::routed_request::RoutedRequest;

/// Path prefix that a page's own host shares with the base host.
const SHARED: &str = "/assets/";
/// Path prefix of pings, which are accepted under any host name: a lost ping would look like a lost job.
const PING_PREFIX: &str = "/ping/";
/// Name under which the feed token of a path is stored.
const TOKEN: &str = "feed token";

/// Returns the page of a request to one of [`rows`](super::rows), for a visitor with access. Programs without
/// access get the same response as for a missing page.
///
/// # Errors
/// [`ApiError::PageNotFound`] both for a missing page and for one the visitor may not see.
pub(in crate::http) fn authorize(context: &HttpContext, call: &RoutedRequest<()>) -> Result<AuthorizedPage, ApiError> {
    // A token gives access to feed routes only.
    if feed_token(call).is_some() {
        call.no_store.set();
        return Err(ApiError::PageNotFound);
    }
    or_not_found(check_access(context, call, None)?)
}

/// Like [`authorize`], for what feed readers, calendars and badges fetch: a token in the path also gives access, as
/// `/p/{slug}/t/{token}/...`.
///
/// # Errors
/// As [`authorize`].
pub(super) fn authorize_feed(context: &HttpContext, call: &RoutedRequest<()>) -> Result<AuthorizedPage, ApiError> {
    or_not_found(check_access(context, call, feed_token(call).map(str::to_owned))?)
}

/// Checks the visitor's access. Responses about protected pages are marked as uncacheable.
///
/// # Errors
/// [`ApiError::PageNotFound`] if there is no such page.
pub(super) fn check_access(
    context: &HttpContext,
    call: &RoutedRequest<()>,
    token: Option<String>,
) -> Result<AccessDecision, ApiError> {
    let (slug, address) = requested_page(context, call)?;
    let credentials = VisitorCredentials {
        access_tokens: cookie::access_tokens(&call.headers, cookie::is_https(context)),
        feed_token: token,
    };
    let entry = context.service.page_access.authorize(slug, address, &credentials);
    if !matches!(&entry, Ok(AccessDecision::Granted(page)) if !page.is_protected()) {
        call.no_store.set();
    }
    entry.map_err(|error| match error {
        ServiceError::NotFound => ApiError::PageNotFound,
        other => other.into(),
    })
}

/// Returns the requested slug, and whether the address is the page's own host.
///
/// # Errors
/// A storage error.
pub(super) fn requested_page<'a>(
    context: &HttpContext,
    call: &'a RoutedRequest<()>,
) -> Result<(&'a str, PageAddress), ApiError> {
    let slug = call.path_param("slug")?;
    let own_slug = host(&call.headers).map(|host| context.service.hosts.slug_of_host(host)).transpose()?.flatten();
    Ok((slug, if own_slug.as_deref() == Some(slug) { PageAddress::OwnHost } else { PageAddress::BasePath }))
}

/// Returns the internal path of a request to a page's own host; none for other hosts.
///
/// # Errors
/// [`ApiError::MisdirectedRequest`] for an unknown host, or a storage error.
pub(in crate::http) fn inner_path(
    context: &HttpContext,
    headers: &HeaderMap,
    path: &str,
) -> Result<Option<String>, ApiError> {
    let Some(host) = host(headers) else { return Ok(None) };
    match context.service.hosts.owner(host)? {
        HostOwner::Unknown if !path.starts_with(PING_PREFIX) => Err(ApiError::MisdirectedRequest),
        HostOwner::Unknown | HostOwner::Base => Ok(None),
        HostOwner::Page(_) if path.starts_with(SHARED) => Ok(None),
        HostOwner::Page(slug) => Ok(Some(format!("/p/{slug}{}", if path == "/" { "" } else { path }))),
    }
}

/// Returns the internal path of a request with a feed token, and the token as a call parameter.
pub(in crate::http) fn split_feed_token(path: &str) -> Option<(String, (String, String))> {
    let (slug, rest) = path.strip_prefix("/p/")?.split_once("/t/")?;
    let (token, rest) = rest.split_once('/')?;
    let is_whole = !slug.contains('/') && !token.is_empty() && !rest.is_empty();
    is_whole.then(|| (format!("/p/{slug}/{rest}"), (TOKEN.to_owned(), token.to_owned())))
}

fn or_not_found(entry: AccessDecision) -> Result<AuthorizedPage, ApiError> {
    match entry {
        AccessDecision::Granted(page) => Ok(*page),
        AccessDecision::PasswordRequired | AccessDecision::SignInRequired => Err(ApiError::PageNotFound),
    }
}

/// Returns the feed token in a request's path.
pub(super) fn feed_token(call: &RoutedRequest<()>) -> Option<&str> {
    call.path_param(TOKEN).ok()
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(HOST)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_out_of_a_path() {
        let split = split_feed_token("/p/shop/t/tok/api/v2/summary.json").map(|(path, (_, token))| (path, token));
        assert_eq!(split, Some(("/p/shop/api/v2/summary.json".to_owned(), "tok".to_owned())));
        for path in ["/p/shop/t/tok", "/p/shop/t/tok/", "/p/shop/t//x", "/p/shop/x/t/tok/y", "/x/t/tok/y", "/p/shop"] {
            assert_eq!(split_feed_token(path).map(|(path, _)| path), None, "{path}");
        }
    }
}
